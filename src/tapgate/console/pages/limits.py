"""Limits, fees and commission: what the KYC levels allow and what transactions cost or earn."""

import asyncio
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.console import seen
from tapgate.console.acts import Act, Field
from tapgate.console.asked import Fields
from tapgate.console.pages.commission import COMMISSIONS, TIERS, by_tier
from tapgate.console.rendering import words
from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code
from tapgate.ledger import chart

pages = Pages()

_LEVEL: Final = "/api/v1/account-rules/{kyc_level}"
_LEVELS: Final = ("1", "2", "3")
_FEES: Final = "/api/v1/fee-rules"
_OF_TYPE: Final = f"{_FEES}/{{type}}"

#: field, what it is called, what more there is to say
AMOUNTS: Final = (
    ("max_balance", "Most in the wallet", ""),
    ("max_transaction", "One payment", ""),
    ("daily_limit", "Sent in a day", ""),
    ("monthly_limit", "Sent in a month", ""),
    ("no_pin_limit", "Without a PIN", "each payment; five times that on one card in a day"),
)
#: What may cost something, most used first.
CHARGED: Final = (
    chart.TRANSFER_P2P,
    chart.TRANSFER,
    chart.POS_PAYMENT,
    chart.ONLINE_PAYMENT,
    chart.AGENT_CASHIN,
    chart.AGENT_CASHOUT,
    chart.AGENT_TRANSFER,
    chart.PARTNER_FUND,
    chart.PROCESSOR_TRANSFER,
)


def _level(level: str) -> Act:
    return Act(
        name=f"limits.level_{level}",
        endpoint=f"PUT {_LEVEL}",
        title=f"Change the limits of level {level}",
        explains="The next payment of everybody on this level is decided by them. Money that is "
        "in a wallet already stays there.",
        button="Change",
        fields=(
            *(Field(name, label, "money", hint=hint) for name, label, hint in AMOUNTS),
            Field(
                "requirements",
                "What it takes to reach this level",
                "lines",
                hint="One in each line",
                required=False,
            ),
        ),
        reads=_LEVEL,
        done=f"The limits of level {level} are changed.",
    )


ACTS = tuple(_level(level) for level in _LEVELS)

#: Its form is a page of its own: a fee has as many steps as it needs.
_FEE: Final = Act(
    name="fee.change",
    endpoint=f"PUT {_OF_TYPE}",
    title="Fee",
    explains="The next transaction of this type is charged by it. The fees of all other types "
    "stay as they are.",
    button="Change the fee",
    done="The fee is changed.",
)
_ROOM: Final = 2  # empty rows, for further steps
_MOST_STEPS: Final = 100  # a form with more of them has more fields than are taken
_LAST: Final = "last"


class _Typed(NamedTuple):
    """What the form of a fee has in it: steps with an end, and the rate of everything above."""

    steps: list[tuple[str | None, str | None]]
    last_rate: str | None
    payer: str | None
    seen: str | None


@pages.get("/console/limits")
async def limits(visit: Visit) -> Reply[bytes]:
    *levels, fees, commissions = await asyncio.gather(
        *(visit.get(at(_LEVEL, {"kyc_level": level})) for level in _LEVELS),
        visit.get_if_allowed(f"GET {_FEES}", _FEES),
        visit.get_if_allowed(f"GET {COMMISSIONS}", COMMISSIONS),
    )
    return visit.page(
        "limits/page.html",
        levels=levels,
        amounts=AMOUNTS,
        fees=None if fees is None else {kind: _of(kind, fees) for kind in CHARGED},
        fee_change=_FEE.endpoint,
        commissions=None if commissions is None else by_tier(commissions["data"]),
        tiers=TIERS,
        commission_change=f"PUT {COMMISSIONS}",
    )


@pages.get("/console/limits/fees/{type}")
async def ask_fee(visit: Visit, type: str) -> Reply[bytes]:
    steps = await _now(visit, type)
    return _form(
        visit,
        type,
        _Typed(
            steps=[(step["up_to"], step["rate"]) for step in steps[:-1]],
            last_rate=steps[-1]["rate"] if steps else "0",
            payer=steps[0]["payer"] if steps else None,
            seen=seen.mark(steps),
        ),
    )


@pages.post("/console/limits/fees/{type}")
async def change_fee(visit: Visit, type: str) -> Reply[bytes]:
    typed, now = _read(visit.form), await _now(visit, type)
    try:
        seen.require_still(typed.seen, now)
        await visit.send("PUT", at(_OF_TYPE, {"type": type}), {"data": _asked(type, typed)})
    except ApiError as error:
        if error.code is Code.UNAUTHORIZED:
            raise
        return _form(visit, type, typed, error)
    return visit.go("/console/limits", _FEE.done)


async def _now(visit: Visit, kind: str) -> list[Any]:
    if kind not in CHARGED:
        raise ApiError(Code.NOT_FOUND)
    await visit.require(_FEE.endpoint)
    return _of(kind, await visit.get(_FEES))


def _of(kind: str, fees: Any) -> list[Any]:
    return [step for step in fees["data"] if step["type"] == kind]


def _read(form: Fields) -> _Typed:
    """A row that is empty is none."""
    steps = [(form.get(f"up_to_{row}"), form.get(f"rate_{row}")) for row in range(_MOST_STEPS)]
    return _Typed(
        steps=[step for step in steps if any(step)],
        last_rate=form.get(f"rate_{_LAST}"),
        payer=form.get("payer"),
        seen=form.get("seen"),
    )


def _asked(kind: str, typed: _Typed) -> list[dict[str, Any]]:
    """As the interface takes it; what is missing is named by its refusal."""
    step = {"type": kind, "payer": typed.payer or ""}
    return [
        *({**step, "up_to": up_to or "", "rate": rate or ""} for up_to, rate in typed.steps),
        {**step, "up_to": None, "rate": typed.last_rate or ""},
    ]


def _form(visit: Visit, kind: str, typed: _Typed, error: ApiError | None = None) -> Reply[bytes]:
    wrong = _wrong(typed, error)
    if error is not None and wrong:  # which says where, in the interface's words
        error = ApiError(error.code, "Some steps are not right yet: look at what is marked")
    is_payment = kind in chart.PAYMENT_TYPES  # of which a refund returns the fee to the receiver
    return visit.page(
        "limits/fee.html",
        act=msgspec.structs.replace(_FEE, title=f"Fee: {words(kind)}"),
        address=visit.call.path,
        error=error,
        wrong=wrong,
        steps=[*typed.steps, *[(None, None)] * _ROOM],
        last_rate=typed.last_rate,
        payers=("receiver",) if is_payment else ("sender", "receiver"),
        payer=typed.payer,
        seen=typed.seen,
    )


def _wrong(typed: _Typed, error: ApiError | None) -> dict[str, str]:
    """By the fields of the form what the refusal says by the steps that were sent."""
    fields = {} if error is None else (error.details or {}).get("fields", {})
    found = {}
    for path, sentence in fields.items():
        place, _, name = path.removeprefix("data[").partition("].")
        is_last = place == str(len(typed.steps))
        found[f"{name}_{_LAST if is_last else place}"] = sentence
    return found
