"""Compliance rule list, with descriptions in words, and actions."""

from typing import Any, Final

from tapgate.console.actions import Action, Field
from tapgate.console.labels import humanize
from tapgate.console.page_request import PageRequest
from tapgate.console.rendering import format_amount
from tapgate.console.site import Pages
from tapgate.edge.endpoint import Reply
from tapgate.ledger import chart

pages = Pages()

RULES_PATH: Final = "/api/v1/compliance/rules"
_ITEM_PATH: Final = f"{RULES_PATH}/{{id}}"
MAX_RULES: Final = 100
_SEVERITIES: Final = ("LOW", "MEDIUM", "HIGH", "CRITICAL")

#: action -> effect on a payment that matches the rule
_ACTION_TEXTS: Final = {
    "alert": "goes through, and an alert is raised",
    "review": "is held until somebody decides here",
    "block": "is refused, and an alert is raised",
}
#: subject -> texts for one transaction, a count of transactions, a total of transactions
_SUBJECT_TEXTS: Final = {
    chart.PAYER: ("A payment", "payment{}", "somebody's payments"),
    chart.PAYEE: ("A received payment", "received payment{}", "payments to one customer"),
    chart.AGENT: (
        "An agent's transaction",
        "transaction{} of one agent",
        "an agent's transactions",
    ),
}
_TIME_UNITS: Final = (
    (604_800, "week"),
    (86_400, "day"),
    (3_600, "hour"),
    (60, "minute"),
    (1, "second"),
)

_NAME: Final = Field("name", "Name")
_SUBJECT: Final = Field(
    "subject",
    "Applies to",
    "choice",
    (
        (chart.PAYER, "Customers who pay"),
        (chart.PAYEE, "Customers who receive"),
        (chart.AGENT, "Agents"),
    ),
    hint="Every transaction type below must have such a party",
)
_WINDOW: Final = Field(
    "window_seconds",
    "Looking back, in seconds",
    "number",
    hint="3600 is an hour, 86400 a day, 604800 a week",
)
_SCREENED_TYPES: Final = frozenset[str]().union(*chart.SUBJECT_TYPES.values())
_EFFECT_FIELDS: Final = (
    Field(
        "action",
        "What becomes of the payment",
        "choice",
        (
            ("alert", "It goes through, and an alert is raised"),
            ("review", "It is held until somebody decides"),
            ("block", "It is refused, and an alert is raised"),
        ),
    ),
    Field("severity", "Severity", "choice", _SEVERITIES),
    Field(
        "transaction_types",
        "Transaction types",
        "many",
        tuple(
            (kind, humanize(kind)) for kind in chart.TRANSACTION_TYPES if kind in _SCREENED_TYPES
        ),
    ),
)


def _build_change_action(name: str, *figures: Field) -> Action:
    return Action(
        name=name,
        endpoint=f"PUT {_ITEM_PATH}",
        title="Change this rule",
        description="The next payment is watched by it as you write it here.",
        button="Change",
        fields=(_NAME, *figures, *_EFFECT_FIELDS),
        prefill_path=_ITEM_PATH,
        success_message="The rule is changed.",
    )


def _build_create_action(name: str, kind: str, button: str, *figures: Field) -> Action:
    return Action(
        name=name,
        endpoint=f"POST {RULES_PATH}",
        title=button,
        description="It applies from the next transaction.",
        button=button,
        fields=(_NAME, Field("type", "Type", "hidden", value=kind), *figures, *_EFFECT_FIELDS),
        success_message="The rule was created.",
    )


def _build_status_action(name: str, status: str, **said: Any) -> Action:
    fields = (Field("status", "Status", "hidden", value=status),)
    return Action(name=name, endpoint=f"PUT {_ITEM_PATH}", fields=fields, **said)


_AMOUNT: Final = Field("threshold", "More than this amount", "money")
_COUNT: Final = Field("threshold", "More than this many", "number")

#: rule type -> action that edits a rule of that type
CHANGE_ACTIONS: Final = {
    "AMOUNT_THRESHOLD": _build_change_action("rule.amount", _SUBJECT, _AMOUNT),
    "CUMULATIVE_AMOUNT": _build_change_action("rule.total", _SUBJECT, _AMOUNT, _WINDOW),
    "TRANSACTION_COUNT": _build_change_action("rule.count", _SUBJECT, _COUNT, _WINDOW),
    "PIN_FAILURES": _build_change_action("rule.wrong_pins", _COUNT, _WINDOW),
}
CREATE_ACTIONS: Final = (
    _build_create_action(
        "rule.new_amount", "AMOUNT_THRESHOLD", "New amount rule", _SUBJECT, _AMOUNT
    ),
    _build_create_action(
        "rule.new_total", "CUMULATIVE_AMOUNT", "New total rule", _SUBJECT, _AMOUNT, _WINDOW
    ),
    _build_create_action(
        "rule.new_count", "TRANSACTION_COUNT", "New count rule", _SUBJECT, _COUNT, _WINDOW
    ),
    _build_create_action(
        "rule.new_wrong_pins", "PIN_FAILURES", "New wrong-PIN rule", _COUNT, _WINDOW
    ),
)

ACTIONS = (
    *CHANGE_ACTIONS.values(),
    *CREATE_ACTIONS,
    Action(
        name="rule.delete",
        endpoint=f"DELETE {_ITEM_PATH}",
        title="Delete this rule?",
        description=(
            "Its alerts stay, and transactions that it holds still wait for a decision."
            " This "
            "cannot be undone; to stop it for some time, deactivate it."
        ),
        button="Delete",
        success_message="The rule was deleted.",
        is_dangerous=True,
    ),
    _build_status_action(
        "rule.activate",
        "active",
        title="Watch payments by this rule?",
        description="From the next payment on. What was paid before is not looked at again, but "
        "counts where the rule counts.",
        button="Activate",
        success_message="The rule is active.",
    ),
    _build_status_action(
        "rule.deactivate",
        "inactive",
        title="Watch no longer by this rule?",
        description="Payments that it would have held or refused go through. Alerts that are there "
        "stay, and so does money that is held. It can be undone.",
        button="Deactivate",
        success_message="The rule is not active any more.",
        is_dangerous=True,
    ),
    Action(
        name="compliance.check",
        endpoint="POST /api/v1/compliance/check",
        title="Would this payment be allowed?",
        description="Asks state, limits and rules as the payment would. Nothing is moved, recorded "
        "or counted.",
        button="Check a payment",
        fields=(
            Field("subscriber_id", "Subscriber", hint="Its identifier: sub_…"),
            Field("amount", "Amount", "money"),
            Field(
                "transaction_type",
                "Type",
                "choice",
                tuple(
                    kind
                    for kind in chart.TRANSACTION_TYPES
                    if kind in chart.LIMITED_TYPES | chart.RECEIVE_ONLY_TYPES
                ),
            ),
        ),
        result_template="compliance/verdict.html",
    ),
)


@pages.get("/console/compliance/rules")
async def list_rules(visit: PageRequest) -> Reply[bytes]:
    found = await visit.get(RULES_PATH, {"limit": MAX_RULES})
    by_age = reversed(found["data"])
    return visit.render(
        "compliance/rules.html",
        rules=sorted(by_age, key=lambda rule: rule["status"] != "active"),
        in_words=describe_rule,
        acts_of=CHANGE_ACTIONS,
        creates=CREATE_ACTIONS,
    )


def describe_rule(rule: dict[str, Any]) -> str:
    """Return one sentence that says what a rule matches and what it does."""
    becomes = _ACTION_TEXTS[rule["action"]]
    threshold = rule["threshold"]
    one, many, total = _SUBJECT_TEXTS[rule["subject"]]
    if rule["type"] == "AMOUNT_THRESHOLD":
        return f"{one} of more than {format_amount(threshold, rule['currency'])} {becomes}."
    span = _format_duration(rule["window_seconds"])
    if rule["type"] == "CUMULATIVE_AMOUNT":
        most = format_amount(threshold, rule["currency"])
        return (
            f"When {total} within {span} come to more than {most}, each one that goes beyond "
            f"{becomes}."
        )
    if rule["type"] == "TRANSACTION_COUNT":
        counted = many.format("" if threshold == 1 else "s")
        return f"After {threshold:,} {counted} within {span}, each further one {becomes}."
    after = f"After more than {_format_count(threshold, 'wrong PIN')} within {span}"
    if rule["action"] == "alert":
        return f"{after}, an alert is raised."
    return f"{after}, an alert is raised, and the next payment {becomes}."


def _format_count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _format_duration(seconds: int) -> str:
    size, name = next(span for span in _TIME_UNITS if seconds % span[0] == 0)
    count = seconds // size
    if count == 1:
        return "an hour" if name == "hour" else f"a {name}"
    return f"{count:,} {name}s"
