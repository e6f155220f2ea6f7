"""Limits per KYC level, fees and commission."""

import asyncio
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.http.endpoint import Reply
from tapgate.ledger import chart
from tapgate.sites.console import stale_check, step_up
from tapgate.sites.console.actions import Action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.forms import FormData
from tapgate.sites.console.labels import humanize
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pages.commission import COMMISSION_RULES_PATH, TIERS, group_by_tier
from tapgate.sites.console.site import Pages
from tapgate.sites.console.typed_input import clean_amount
from tapgate_client.errors import ApiError, Code

pages = Pages()

_LEVEL_PATH: Final = "/api/v1/account-rules/{kyc_level}"
_LEVELS: Final = ("1", "2", "3")
_FEES_PATH: Final = "/api/v1/fee-rules"
_FEE_PATH: Final = f"{_FEES_PATH}/{{type}}"

#: (field, label, hint)
LIMIT_FIELDS: Final = (
    ("max_balance", "Maximum balance", ""),
    ("max_transaction", "Per transaction", ""),
    ("daily_limit", "Daily limit", ""),
    ("monthly_limit", "Monthly limit", ""),
    ("no_pin_limit", "No-PIN limit", "Per payment. Each card: 5 times this amount per day."),
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
            *(Field(name, label, "money", hint=hint) for name, label, hint in LIMIT_FIELDS),
            Field("requirements", "Requirements", "lines", hint="One per line", required=False),
        ),
        prefill_path=_LEVEL_PATH,
        success_message=f"Level {level} limits updated.",
    )


ACTIONS = tuple(_build_level_action(level) for level in _LEVELS)

#: The fee form has its own page, because a fee has a variable number of tiers.
_FEE_ACTION: Final = Action(
    name="fee.change",
    endpoint=f"PUT {_FEE_PATH}",
    title="Fee",
    description="Applies from the next transaction of this type. Other fees don't change.",
    button="Save",
    success_message="Fee updated.",
)
_EMPTY_ROWS: Final = 2  # for additional fee tiers
_MAX_FEE_TIERS: Final = 100  # more tiers would exceed the maximum number of form fields
_LAST_FEE_TIER: Final = "last"


class _FeeForm(NamedTuple):
    """Contents of the fee form: tiers with an upper bound, and the rate for higher amounts."""

    tiers: list[tuple[str | None, str | None]]
    last_rate: str | None
    payer: str | None
    fingerprint: str | None


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
        fee_endpoint=_FEE_ACTION.endpoint,
        commissions=None if commissions is None else group_by_tier(commissions["data"]),
        tiers=TIERS,
        commission_endpoint=f"PUT {COMMISSION_RULES_PATH}",
    )


@pages.get("/console/limits/fees/{type}")
async def show_fee_form(request: PageRequest, type: str) -> Reply[bytes]:
    tiers = await _load_fee_tiers(request, type)
    return _render_form(
        request,
        type,
        _FeeForm(
            tiers=[(tier["up_to"], tier["rate"]) for tier in tiers[:-1]],
            last_rate=tiers[-1]["rate"] if tiers else "0",
            payer=tiers[0]["payer"] if tiers else None,
            fingerprint=stale_check.fingerprint(tiers),
        ),
    )


@pages.post("/console/limits/fees/{type}")
async def change_fee(request: PageRequest, type: str) -> Reply[bytes]:
    form, current = _parse_form(request.form), await _load_fee_tiers(request, type)
    try:
        stale_check.require_unchanged(form.fingerprint, current)
        await request.send("PUT", _FEE_PATH, {"data": _build_request_tiers(type, form)}, type=type)
    except ApiError as error:
        if step_up.concerns_session(error):
            raise
        return _render_form(request, type, form, error)
    return request.redirect("/console/limits", _FEE_ACTION.success_message)


async def _load_fee_tiers(request: PageRequest, transaction_type: str) -> list[Any]:
    if transaction_type not in CHARGED_TYPES:
        raise ApiError(Code.NOT_FOUND)
    await request.require_access(_FEE_ACTION.endpoint)
    return _filter_fee_tiers(transaction_type, await request.get(_FEES_PATH))


def _filter_fee_tiers(transaction_type: str, fees: Any) -> list[Any]:
    return [tier for tier in fees["data"] if tier["type"] == transaction_type]


def _parse_form(form: FormData) -> _FeeForm:
    """Parse the fee form. Empty rows are ignored."""
    tiers = [
        (clean_amount(form.get(f"up_to_{row}")), form.get(f"rate_{row}"))
        for row in range(_MAX_FEE_TIERS)
    ]
    return _FeeForm(
        tiers=[tier for tier in tiers if any(tier)],
        last_rate=form.get(f"rate_{_LAST_FEE_TIER}"),
        payer=form.get("payer"),
        fingerprint=form.get("seen"),
    )


def _build_request_tiers(transaction_type: str, form: _FeeForm) -> list[dict[str, Any]]:
    """Return the fee tiers for the API request.

    A missing value is sent as an empty string, which the API rejects with an error that names the
    field.
    """
    tier = {"type": transaction_type, "payer": form.payer or ""}
    return [
        *({**tier, "up_to": up_to or "", "rate": rate or ""} for up_to, rate in form.tiers),
        {**tier, "up_to": None, "rate": form.last_rate or ""},
    ]


def _render_form(
    request: PageRequest, transaction_type: str, form: _FeeForm, error: ApiError | None = None
) -> Reply[bytes]:
    field_errors = _map_field_errors(form, error)
    if error is not None and field_errors:  # the API's message contains field paths of the API
        error = ApiError(error.code, "Fix the highlighted fields and try again.")
    is_payment = (
        transaction_type in chart.PAYMENT_TYPES
    )  # a refund of a payment returns the fee to the receiver
    return request.render(
        "limits/fee.html",
        action=msgspec.structs.replace(
            _FEE_ACTION.translate(request.translator),
            title=request.translate(
                "Fee: {type}", type=request.translator.translate_label(humanize(transaction_type))
            ),
        ),
        address=request.context.path,
        error=error,
        field_errors=field_errors,
        steps=[*form.tiers, *[(None, None)] * _EMPTY_ROWS],
        last_rate=form.last_rate,
        payers=("receiver",) if is_payment else ("sender", "receiver"),
        payer=form.payer,
        fingerprint=form.fingerprint,
    )


def _map_field_errors(form: _FeeForm, error: ApiError | None) -> dict[str, str]:
    """Map the API's errors, which refer to submitted fee tiers, to the fields of the form."""
    fields = {} if error is None else (error.details or {}).get("fields", {})
    field_errors = {}
    for path, message in fields.items():
        index, _, name = path.removeprefix("data[").partition("].")
        is_last = index == str(len(form.tiers))
        field_errors[f"{name}_{_LAST_FEE_TIER if is_last else index}"] = message
    return field_errors
