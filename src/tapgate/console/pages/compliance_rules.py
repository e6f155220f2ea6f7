"""Compliance rules: shown in words, created, changed and deleted."""

from typing import Any, Final

from tapgate.console.acts import Act, Field
from tapgate.console.rendering import money, words
from tapgate.console.site import Pages
from tapgate.console.visit import Visit
from tapgate.edge.endpoint import Reply
from tapgate.ledger import chart

pages = Pages()

RULES: Final = "/api/v1/compliance/rules"
_ONE: Final = f"{RULES}/{{id}}"
MOST_RULES: Final = 100
_SEVERITIES: Final = ("LOW", "MEDIUM", "HIGH", "CRITICAL")

#: action -> what becomes of the payment that a rule matches
_BECOMES: Final = {
    "alert": "goes through, and an alert is raised",
    "review": "is held until somebody decides here",
    "block": "is refused, and an alert is raised",
}
#: subject -> one transaction, how several are counted, how they are added up
_NOUNS: Final = {
    chart.PAYER: ("A payment", "payment{}", "somebody's payments"),
    chart.PAYEE: ("A received payment", "received payment{}", "payments to one customer"),
    chart.AGENT: (
        "An agent's transaction",
        "transaction{} of one agent",
        "an agent's transactions",
    ),
}
_SPANS: Final = ((604_800, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))

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
_SCREENED: Final = frozenset[str]().union(*chart.SUBJECT_TYPES.values())
_EFFECT: Final = (
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
        tuple((kind, words(kind)) for kind in chart.TRANSACTION_TYPES if kind in _SCREENED),
    ),
)


def _change(name: str, *figures: Field) -> Act:
    return Act(
        name=name,
        endpoint=f"PUT {_ONE}",
        title="Change this rule",
        explains="The next payment is watched by it as you write it here.",
        button="Change",
        fields=(_NAME, *figures, *_EFFECT),
        reads=_ONE,
        done="The rule is changed.",
    )


def _create(name: str, kind: str, button: str, *figures: Field) -> Act:
    return Act(
        name=name,
        endpoint=f"POST {RULES}",
        title=button,
        explains="It applies from the next transaction.",
        button=button,
        fields=(_NAME, Field("type", "Type", "hidden", value=kind), *figures, *_EFFECT),
        done="The rule was created.",
    )


def _switch(name: str, status: str, **said: Any) -> Act:
    fields = (Field("status", "Status", "hidden", value=status),)
    return Act(name=name, endpoint=f"PUT {_ONE}", fields=fields, **said)


_AMOUNT: Final = Field("threshold", "More than this amount", "money")
_COUNT: Final = Field("threshold", "More than this many", "number")

#: A rule's type -> the act that changes one of that type.
CHANGES: Final = {
    "AMOUNT_THRESHOLD": _change("rule.amount", _SUBJECT, _AMOUNT),
    "CUMULATIVE_AMOUNT": _change("rule.total", _SUBJECT, _AMOUNT, _WINDOW),
    "TRANSACTION_COUNT": _change("rule.count", _SUBJECT, _COUNT, _WINDOW),
    "PIN_FAILURES": _change("rule.wrong_pins", _COUNT, _WINDOW),
}
CREATES: Final = (
    _create("rule.new_amount", "AMOUNT_THRESHOLD", "New amount rule", _SUBJECT, _AMOUNT),
    _create("rule.new_total", "CUMULATIVE_AMOUNT", "New total rule", _SUBJECT, _AMOUNT, _WINDOW),
    _create("rule.new_count", "TRANSACTION_COUNT", "New count rule", _SUBJECT, _COUNT, _WINDOW),
    _create("rule.new_wrong_pins", "PIN_FAILURES", "New wrong-PIN rule", _COUNT, _WINDOW),
)

ACTS = (
    *CHANGES.values(),
    *CREATES,
    Act(
        name="rule.delete",
        endpoint=f"DELETE {_ONE}",
        title="Delete this rule?",
        explains="Its alerts stay, and transactions that it holds still wait for a decision. This "
        "cannot be undone; to stop it for some time, deactivate it.",
        button="Delete",
        done="The rule was deleted.",
        dangerous=True,
    ),
    _switch(
        "rule.activate",
        "active",
        title="Watch payments by this rule?",
        explains="From the next payment on. What was paid before is not looked at again, but "
        "counts where the rule counts.",
        button="Activate",
        done="The rule is active.",
    ),
    _switch(
        "rule.deactivate",
        "inactive",
        title="Watch no longer by this rule?",
        explains="Payments that it would have held or refused go through. Alerts that are there "
        "stay, and so does money that is held. It can be undone.",
        button="Deactivate",
        done="The rule is not active any more.",
        dangerous=True,
    ),
    Act(
        name="compliance.check",
        endpoint="POST /api/v1/compliance/check",
        title="Would this payment be allowed?",
        explains="Asks state, limits and rules as the payment would. Nothing is moved, recorded "
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
        shows="compliance/verdict.html",
    ),
)


@pages.get("/console/compliance/rules")
async def rules(visit: Visit) -> Reply[bytes]:
    found = await visit.get(RULES, {"limit": MOST_RULES})
    by_age = reversed(found["data"])
    return visit.page(
        "compliance/rules.html",
        rules=sorted(by_age, key=lambda rule: rule["status"] != "active"),
        in_words=in_words,
        acts_of=CHANGES,
        creates=CREATES,
    )


def in_words(rule: dict[str, Any]) -> str:
    """What a rule matches and what it does then, in one sentence."""
    becomes = _BECOMES[rule["action"]]
    threshold = rule["threshold"]
    one, many, total = _NOUNS[rule["subject"]]
    if rule["type"] == "AMOUNT_THRESHOLD":
        return f"{one} of more than {money(threshold, rule['currency'])} {becomes}."
    span = _span(rule["window_seconds"])
    if rule["type"] == "CUMULATIVE_AMOUNT":
        most = money(threshold, rule["currency"])
        return (
            f"When {total} within {span} come to more than {most}, each one that goes beyond "
            f"{becomes}."
        )
    if rule["type"] == "TRANSACTION_COUNT":
        counted = many.format("" if threshold == 1 else "s")
        return f"After {threshold:,} {counted} within {span}, each further one {becomes}."
    after = f"After more than {_many(threshold, 'wrong PIN')} within {span}"
    if rule["action"] == "alert":
        return f"{after}, an alert is raised."
    return f"{after}, an alert is raised, and the next payment {becomes}."


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _span(seconds: int) -> str:
    size, name = next(span for span in _SPANS if seconds % span[0] == 0)
    count = seconds // size
    if count == 1:
        return "an hour" if name == "hour" else f"a {name}"
    return f"{count:,} {name}s"
