"""Compliance rule list with descriptions, and actions."""

from functools import partial
from typing import Any, Final, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.ledger import chart
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.related import MAX_RULES
from tapgate.sites.console.components.state_actions import build_state_action, build_status_field
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.labels import humanize
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate.sites.console.translation.translator import Translator, source_text
from tapgate_client.schemas.compliance import RuleSubject

pages = Pages()

RULES_PATH: Final = "/api/v1/compliance/rules"
_ITEM_PATH: Final = f"{RULES_PATH}/{{id}}"
_SEVERITIES: Final = ("LOW", "MEDIUM", "HIGH", "CRITICAL")

#: action -> effect on a transaction that matches the rule
_ACTION_TEXTS: Final = {
    "alert": source_text("allow and alert"),
    "review": source_text("hold for review"),
    "block": source_text("decline and alert"),
}
#: action -> effect of a rule that counts wrong PINs
_PIN_ACTION_TEXTS: Final = {
    "alert": source_text("alert"),
    "review": source_text("alert and hold the next payment for review"),
    "block": source_text("alert and decline the next payment"),
}


class _SubjectTexts(NamedTuple):
    """Rule descriptions for a subject: one amount, a total, and a count."""

    amount: str
    total: str
    count_one: str
    count_other: str


_SUBJECT_TEXTS: Final = {
    RuleSubject.PAYER: _SubjectTexts(
        "Payment over {amount}: {action}.",
        "More than {amount} sent in {window}: {action}.",
        "More than {count} payment in {window}: {action}.",
        "More than {count} payments in {window}: {action}.",
    ),
    RuleSubject.PAYEE: _SubjectTexts(
        "Incoming payment over {amount}: {action}.",
        "More than {amount} received in {window}: {action}.",
        "More than {count} incoming payment in {window}: {action}.",
        "More than {count} incoming payments in {window}: {action}.",
    ),
    RuleSubject.AGENT: _SubjectTexts(
        "Agent transaction over {amount}: {action}.",
        "More than {amount} handled by one agent in {window}: {action}.",
        "More than {count} transaction by one agent in {window}: {action}.",
        "More than {count} transactions by one agent in {window}: {action}.",
    ),
}
_PIN_TEXTS: Final = (
    "More than {count} wrong PIN in {window}: {action}.",
    "More than {count} wrong PINs in {window}: {action}.",
)
_TIME_UNITS: Final = (
    (604_800, source_text("a week"), source_text("{count} weeks")),
    (86_400, source_text("a day"), source_text("{count} days")),
    (3_600, source_text("an hour"), source_text("{count} hours")),
    (60, source_text("a minute"), source_text("{count} minutes")),
    (1, source_text("a second"), source_text("{count} seconds")),
)

_NAME: Final = Field("name")
_SUBJECT: Final = Field(
    "subject",
    "Applies to",
    "choice",
    (
        (RuleSubject.PAYER, "Customers sending money"),
        (RuleSubject.PAYEE, "Customers receiving money"),
        (RuleSubject.AGENT, "Agents"),
    ),
    hint="Every transaction type selected below must involve them",
)
_WINDOW: Final = Field(
    "window_seconds",
    "Time window",
    "duration",
    (
        ("900", "15 minutes"),
        ("3600", "1 hour"),
        ("86400", "1 day"),
        ("604800", "1 week"),
        ("2592000", "30 days"),
    ),
    value="86400",
)
_SCREENED_TYPES: Final = frozenset[str]().union(*chart.SUBJECT_TYPES.values())
_EFFECT_FIELDS: Final = (
    Field(
        "action",
        kind="choice",
        choices=(
            ("alert", "Allow and alert"),
            ("review", "Hold for review"),
            ("block", "Decline and alert"),
        ),
    ),
    Field("severity", kind="choice", choices=_SEVERITIES),
    Field(
        "transaction_types",
        kind="many",
        choices=tuple(
            (name, humanize(name)) for name in chart.TRANSACTION_TYPES if name in _SCREENED_TYPES
        ),
    ),
)


_AMOUNT: Final = Field("threshold", "Amount threshold", "money", hint="Matches amounts above this")
_COUNT: Final = Field(
    "threshold", "Count threshold", "number", hint="Matches when the count exceeds this"
)


class _RuleForm(NamedTuple):
    """Form for a rule type: action name suffix, noun and type-specific fields."""

    suffix: str
    noun: str
    fields: tuple[Field, ...]


_RULE_FORMS: Final = {
    "AMOUNT_THRESHOLD": _RuleForm("amount", "amount rule", (_SUBJECT, _AMOUNT)),
    "CUMULATIVE_AMOUNT": _RuleForm("total", "total rule", (_SUBJECT, _AMOUNT, _WINDOW)),
    "TRANSACTION_COUNT": _RuleForm("count", "count rule", (_SUBJECT, _COUNT, _WINDOW)),
    "PIN_FAILURES": _RuleForm("wrong_pins", "wrong-PIN rule", (_COUNT, _WINDOW)),
}
#: rule type -> action that edits a rule of that type
CHANGE_ACTIONS: Final = {
    rule_type: Action(
        name=f"rule.{form.suffix}",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Edit rule",
        description="Applies from the next transaction.",
        button="Save",
        fields=(_NAME, *form.fields, *_EFFECT_FIELDS),
        prefill_path=_ITEM_PATH,
        success_message="Rule updated.",
    )
    for rule_type, form in _RULE_FORMS.items()
}
CREATE_ACTIONS: Final = tuple(
    Action(
        name=f"rule.new_{form.suffix}",
        endpoint=f"POST {RULES_PATH}",
        title=f"Add {form.noun}",
        description="Applies from the next transaction.",
        fields=(
            _NAME,
            Field("type", kind="hidden", value=rule_type),
            *form.fields,
            *_EFFECT_FIELDS,
        ),
        success_message="Rule created.",
    )
    for rule_type, form in _RULE_FORMS.items()
)

ACTIONS = (
    *CHANGE_ACTIONS.values(),
    *CREATE_ACTIONS,
    build_state_action(
        "rule",
        _ITEM_PATH,
        "rule",
        "delete",
        "Existing alerts are kept, and held payments still need a decision. This "
        "can't be undone. To pause the rule, turn it off instead.",
    ),
    Action(
        name="rule.activate",
        endpoint=f"PUT {_ITEM_PATH}",
        fields=(build_status_field("active"),),
        title="Turn on this rule?",
        description="Applies from the next payment. Earlier payments aren't screened again, but "
        "count toward the rule's totals.",
        button="Turn on",
        success_message="Rule turned on.",
    ),
    Action(
        name="rule.deactivate",
        endpoint=f"PUT {_ITEM_PATH}",
        fields=(build_status_field("inactive"),),
        title="Turn off this rule?",
        description="Payments it would have held or declined go through. Existing alerts and held "
        "funds don't change. You can turn it on again.",
        button="Turn off",
        success_message="Rule turned off.",
        is_dangerous=True,
    ),
    Action(
        name="compliance.check",
        endpoint="POST /api/v1/compliance/check",
        title="Check a payment",
        description="Tests a payment against account status, limits and rules. No money moves, and "
        "nothing is recorded.",
        fields=(
            Field("subscriber_id", kind="picker", picks="subscriber"),
            Field("amount", kind="money"),
            Field(
                "transaction_type",
                "Type",
                "choice",
                tuple(
                    name
                    for name in chart.TRANSACTION_TYPES
                    if name in chart.LIMITED_TYPES | chart.RECEIVE_ONLY_TYPES
                ),
            ),
        ),
        result_template="compliance/check_result.html",
    ),
)


@pages.get("/console/compliance/rules")
async def list_rules(request: PageRequest) -> Reply[bytes]:
    rules = await request.get(RULES_PATH, {"limit": MAX_RULES})
    by_age = reversed(rules["data"])
    return request.render(
        "compliance/rules.html",
        rules=sorted(by_age, key=lambda rule: rule["status"] != "active"),
        describe_rule=partial(describe_rule, translator=request.translator),
        change_actions=CHANGE_ACTIONS,
        create_actions=CREATE_ACTIONS,
    )


def describe_rule(rule: dict[str, Any], translator: Translator) -> str:
    """Return one sentence that says what a rule matches and what it does."""
    is_pin_rule = rule["type"] == "PIN_FAILURES"
    actions = _PIN_ACTION_TEXTS if is_pin_rule else _ACTION_TEXTS
    action, threshold = translator.translate(actions[rule["action"]]), rule["threshold"]
    texts = _SUBJECT_TEXTS[rule["subject"]]
    if rule["type"] == "AMOUNT_THRESHOLD":
        amount = translator.numbers.format_amount(threshold, rule["currency"])
        return translator.translate(texts.amount, amount=amount, action=action)
    window = _format_duration(rule["window_seconds"], translator)
    if rule["type"] == "CUMULATIVE_AMOUNT":
        amount = translator.numbers.format_amount(threshold, rule["currency"])
        return translator.translate(texts.total, amount=amount, window=window, action=action)
    one, other = _PIN_TEXTS if is_pin_rule else (texts.count_one, texts.count_other)
    return translator.translate_plural(threshold, one, other, window=window, action=action)


def _format_duration(seconds: int, translator: Translator) -> str:
    size, one, other = next(unit for unit in _TIME_UNITS if seconds % unit[0] == 0)
    count = seconds // size
    if count == 1:
        return translator.translate(one)
    return translator.translate(other, count=translator.numbers.format_number(count))
