"""Limits per KYC level, fees and commission."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tapgate.http.endpoint import Reply
from tapgate.ledger import chart
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.table_form import TableForm
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.labels import humanize
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pages.commission import COMMISSION_RULES_PATH, TIERS, group_by_tier
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code

pages = Pages()

_LEVEL_PATH: Final = "/api/v1/account-rules/{kyc_level}"
_LEVELS: Final = ("1", "2", "3")
_FEES_PATH: Final = "/api/v1/fee-rules"
_FEE_PATH: Final = f"{_FEES_PATH}/{{type}}"

_NO_PIN_HINT: Final = "Per payment. Each card: 5 times this amount per day."
LIMIT_FIELDS: Final = (
    Field("max_balance", "Maximum balance", "money"),
    Field("max_transaction", "Per transaction", "money"),
    Field("daily_limit", kind="money"),
    Field("monthly_limit", kind="money"),
    Field("no_pin_limit", "No-PIN limit", "money", hint=_NO_PIN_HINT),
)
#: Transaction types that may have a fee, most used first.
CHARGED_TYPES: Final = (
    chart.TRANSFER_P2P,
    chart.TRANSFER,
    chart.POS_PAYMENT,
    chart.ONLINE_PAYMENT,
    chart.AGENT_CASHIN,
    chart.AGENT_CASHOUT,
    chart.AGENT_TRANSFER,
    chart.PARTNER_FUND,
    chart.PROCESSOR_TRANSFER,
    chart.PAYOUT,
    chart.BATCH_CREDIT,
)


def _build_level_action(level: str) -> Action:
    return Action(
        name=f"limits.level_{level}",
        endpoint=f"PUT {_LEVEL_PATH}",
        title=f"Edit level {level} limits",
        description="Applies to the next payment of every customer at this level. Existing "
        "balances don't change.",
        button="Save",
        fields=(
            *LIMIT_FIELDS,
            Field("requirements", kind="lines", hint="One per line", required=False),
        ),
        prefill_path=_LEVEL_PATH,
        success_message=f"Level {level} limits updated.",
    )


ACTIONS = tuple(_build_level_action(level) for level in _LEVELS)

#: A fee has a variable number of tiers.
FEE_FORM: Final = TableForm(
    Action(
        name="fee.change",
        endpoint=f"PUT {_FEE_PATH}",
        title="Fee",
        description="Applies from the next transaction of this type. Other fees don't change.",
        button="Save",
        success_message="Fee updated.",
    ),
    "limits/fee.html",
    "/console/limits",
)
_EMPTY_ROWS: Final = 2  # for additional fee tiers
_MAX_FEE_TIERS: Final = 100  # more tiers would exceed the maximum number of form fields
_LAST_FEE_TIER: Final = "last"
_TIER_FIELDS: Final = ("up_to", "rate", "fixed", "minimum", "maximum")


@pages.get("/console/limits")
async def show_limits(request: PageRequest) -> Reply[bytes]:
    *levels, fees, commissions = await asyncio.gather(
        *(request.get(_LEVEL_PATH, kyc_level=level) for level in _LEVELS),
        request.get_if_allowed(_FEES_PATH),
        request.get_if_allowed(COMMISSION_RULES_PATH),
    )
    return request.render(
        "limits/limits.html",
        levels=levels,
        amounts=LIMIT_FIELDS,
        fees=None
        if fees is None
        else {
            transaction_type: _filter_fee_tiers(transaction_type, fees)
            for transaction_type in CHARGED_TYPES
        },
        fee_endpoint=FEE_FORM.action.endpoint,
        commissions=None if commissions is None else group_by_tier(commissions["data"]),
        tiers=TIERS,
        commission_endpoint=f"PUT {COMMISSION_RULES_PATH}",
    )


@pages.get("/console/limits/fees/{type}")
async def show_fee_form(request: PageRequest, type: str) -> Reply[bytes]:
    tiers = await _load_fee_tiers(request, type)
    shown = tiers or [{"up_to": None, "rate": "0", "payer": None}]
    return FEE_FORM.show(request, tiers, _build_context(request, type, shown))


@pages.post("/console/limits/fees/{type}")
async def change_fee(request: PageRequest, type: str) -> Reply[bytes]:
    tiers, current = _parse_tiers(request, type), await _load_fee_tiers(request, type)
    context = _build_context(request, type, [*tiers.values()])
    return await FEE_FORM.submit(request, current, tiers, context, type=type)


async def _load_fee_tiers(request: PageRequest, transaction_type: str) -> list[Any]:
    if transaction_type not in CHARGED_TYPES:
        raise ApiError(Code.NOT_FOUND)
    await request.require_access(FEE_FORM.action.endpoint)
    return _filter_fee_tiers(transaction_type, await request.get(_FEES_PATH))


def _filter_fee_tiers(transaction_type: str, fees: Any) -> list[Any]:
    return [tier for tier in fees["data"] if tier["type"] == transaction_type]


def _parse_tiers(request: PageRequest, transaction_type: str) -> dict[str, dict[str, Any]]:
    """Return the submitted fee tiers. Empty rows are ignored.

    A missing value is sent as an empty string, which the API rejects with an error that names the
    field.
    """
    tier = {"type": transaction_type, "payer": request.form.get("payer") or ""}
    rows = [_parse_tier(request, str(row)) for row in range(_MAX_FEE_TIERS)]
    bounded = [{"up_to": "", "rate": "", **tier, **row} for row in rows if row]
    last = {"rate": "", **tier, **_parse_tier(request, _LAST_FEE_TIER), "up_to": None}
    return {str(row): values for row, values in enumerate(bounded)} | {_LAST_FEE_TIER: last}


def _parse_tier(request: PageRequest, row: str) -> dict[str, str]:
    """Return the values of a tier that are not empty."""
    values = {
        name: request.translator.numbers.clean(request.form.get(f"{name}_{row}"))
        for name in _TIER_FIELDS
    }
    return {name: value for name, value in values.items() if value}


def _build_context(
    request: PageRequest, transaction_type: str, tiers: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what the template shows: tiers with an upper bound, and the fee above them."""
    label = request.translator.translate_label(humanize(transaction_type))
    # A payment refund returns the fee to the receiver.
    is_payment = transaction_type in chart.PAYMENT_TYPES
    return {
        "action": msgspec.structs.replace(
            FEE_FORM.action.translate(request.translator),
            title=request.translate("Fee: {type}", type=label),
        ),
        "steps": {
            **{str(row): tier for row, tier in enumerate([*tiers[:-1], *[{}] * _EMPTY_ROWS])},
            _LAST_FEE_TIER: tiers[-1],
        },
        "payers": ("receiver",) if is_payment else ("sender", "receiver"),
        "payer": tiers[0]["payer"],
    }
