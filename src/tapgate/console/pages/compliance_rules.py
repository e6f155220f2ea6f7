"""What payments are watched by: the rules in words, and changing them."""

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
_SPANS: Final = ((604_800, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))

_NAME: Final = Field("name", "Name")
_WINDOW: Final = Field(
    "window_seconds",
    "Looking back, in seconds",
    "number",
    hint="3600 is an hour, 86400 a day, 604800 a week",
)
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
        "What is watched",
        "many",
        tuple((kind, words(kind)) for kind in chart.TYPES if kind in chart.COUNTED_TYPES),
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


def _switch(name: str, status: str, **said: Any) -> Act:
    fields = (Field("status", "Status", "hidden", value=status),)
    return Act(name=name, endpoint=f"PUT {_ONE}", fields=fields, **said)


_AMOUNT: Final = Field("threshold", "More than this amount", "money")
_COUNT: Final = Field("threshold", "More than this many", "number")

#: A rule's type -> the act that changes one of that type.
CHANGES: Final = {
    "AMOUNT_THRESHOLD": _change("rule.amount", _AMOUNT),
    "CUMULATIVE_AMOUNT": _change("rule.total", _AMOUNT, _WINDOW),
    "TRANSACTION_COUNT": _change("rule.count", _COUNT, _WINDOW),
    "PIN_FAILURES": _change("rule.wrong_pins", _COUNT, _WINDOW),
}

ACTS = (
    *CHANGES.values(),
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
                    for kind in chart.TYPES
                    if kind in chart.COUNTED_TYPES | chart.RECEIVED_TYPES
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
    )


def in_words(rule: dict[str, Any]) -> str:
    """What a rule matches and what it does then, in one sentence."""
    becomes = _BECOMES[rule["action"]]
    threshold = rule["threshold"]
    if rule["type"] == "AMOUNT_THRESHOLD":
        return f"A payment of more than {money(threshold, rule['currency'])} {becomes}."
    span = _span(rule["window_seconds"])
    if rule["type"] == "CUMULATIVE_AMOUNT":
        most = money(threshold, rule["currency"])
        return (
            f"When somebody's payments within {span} come to more than {most}, each one that goes "
            f"beyond {becomes}."
        )
    if rule["type"] == "TRANSACTION_COUNT":
        return f"After {_many(threshold, 'payment')} within {span}, each further one {becomes}."
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
