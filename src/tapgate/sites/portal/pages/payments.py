"""Payments: list with filters, CSV export, and a payment's receipt."""

from collections.abc import Awaitable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.lists import get_filtered_list
from tapgate.sites.console.components.next_steps import tell_dispute
from tapgate.sites.console.components.periods import PRESETS, resolve_preset
from tapgate.sites.console.components.stories import tell_transaction
from tapgate.sites.console.components.transaction_actions import (
    get_refundable_amount,
    list_possible_actions,
)
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages import transactions
from tapgate.sites.console.site import Pages
from tapgate.sites.console.translation.translator import source_text
from tapgate.sites.portal.components import find_action, get_owner_id, get_owner_type
from tapgate.sites.portal.pages.terminals import TERMINALS_PATH
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.owners import OwnerType
from tapgate_client.schemas.transactions import MoneyFlow, TransactionStatus, TransactionType

pages = Pages()

_LIST_PATH: Final = "/api/v1/transactions"
_ITEM_PATH: Final = f"{_LIST_PATH}/{{id}}"
_DISPUTES_PATH: Final = "/api/v1/disputes"
_FILTERS: Final = {"type": "Type", "flow": "Flow", "status": "Status", "from": "From", "to": "To"}
_DEFAULT_PERIOD: Final = "month"
_CASHIER_PERIOD: Final = source_text("Today and yesterday")
_CHOSEN_PERIOD: Final = source_text("Chosen dates")
_SELECTED: Final = source_text("Selected payments")
#: Transaction types per owner type, most frequent first.
_TYPES: Final[Mapping[OwnerType, tuple[TransactionType, ...]]] = {
    OwnerType.PROCESSOR: (
        TransactionType.POS_PAYMENT,
        TransactionType.ONLINE_PAYMENT,
        TransactionType.REFUND,
        TransactionType.PAYOUT,
        TransactionType.PAYOUT_RETURN,
        TransactionType.PROCESSOR_TRANSFER,
        TransactionType.TRANSFER,
    ),
    OwnerType.PARTNER: (
        TransactionType.PARTNER_FUND,
        TransactionType.BATCH_CREDIT,
        TransactionType.PARTNER_DEPOSIT,
        TransactionType.REVERSAL,
        TransactionType.PAYOUT,
        TransactionType.PAYOUT_RETURN,
    ),
    OwnerType.AGENT: (
        TransactionType.AGENT_CASHIN,
        TransactionType.AGENT_CASHOUT,
        TransactionType.AGENT_FUND,
        TransactionType.AGENT_TRANSFER,
        TransactionType.COMMISSION_PAYOUT,
        TransactionType.REVERSAL,
        TransactionType.PAYOUT,
        TransactionType.PAYOUT_RETURN,
    ),
}
_BANK_PAYOUTS: Final = source_text("Bank payouts")
#: Totals above the list per owner type. Each total has one direction.
_SUMS: Final[Mapping[OwnerType, Mapping[str, Mapping[str, str]]]] = {
    OwnerType.PROCESSOR: {
        source_text("Payments"): {"flow": MoneyFlow.PAYMENTS.value},
        source_text("Refunds"): {"flow": MoneyFlow.REFUNDS.value},
        _BANK_PAYOUTS: {"type": TransactionType.PAYOUT.value},
    },
    OwnerType.PARTNER: {
        source_text("Top-ups"): {"flow": MoneyFlow.MONEY_IN.value},
        source_text("Deposits"): {"type": TransactionType.PARTNER_DEPOSIT.value},
        _BANK_PAYOUTS: {"type": TransactionType.PAYOUT.value},
    },
    OwnerType.AGENT: {
        source_text("Cash-ins"): {"flow": MoneyFlow.MONEY_IN.value},
        source_text("Cash-outs"): {"flow": MoneyFlow.MONEY_OUT.value},
        source_text("Commission payouts"): {"type": TransactionType.COMMISSION_PAYOUT.value},
    },
}
_MAX_TERMINALS: Final = 100
_REFUND: Final = "transaction.refund"

ACTIONS: Final = (
    find_action(
        transactions.ACTIONS,
        _REFUND,
        description="Returns money from your balance to the customer's wallet.",
    ),
)


@pages.get(f"{PORTAL}/transactions")
async def list_payments(request: PageRequest) -> Reply[bytes]:
    page, filter_errors = await get_filtered_list(request, _LIST_PATH, _FILTERS)
    return request.render(
        "portal/payments.html",
        page=page,
        filter_errors=filter_errors,
        sums=None if filter_errors or request.query.get("cursor") else await _load_sums(request),
        types=_TYPES[get_owner_type(request)],
        statuses=tuple(TransactionStatus),
        periods=PRESETS,
        filters=urlencode(request.query.pick(*_FILTERS, "period")),
    )


class _Sums(NamedTuple):
    period: str
    by_label: dict[str, Any]


async def _load_sums(request: PageRequest) -> _Sums:
    """Add up the listed payments by direction. Without a period, the last 30 days are added up."""
    filters = request.query.pick("status", "type", "flow")
    preset, dates = request.query.get("period"), request.query.pick("from", "to")
    zone = request.context.services.settings.timezone
    if preset not in PRESETS and dates:
        period, name = dates, _CHOSEN_PERIOD
    else:
        preset = preset if preset in PRESETS else _DEFAULT_PERIOD
        period, name = resolve_preset(preset, request.now, zone), PRESETS[preset]
        if request.principal.role == AdminRole.MERCHANT_CASHIER and not request.query.get("period"):
            name = _CASHIER_PERIOD
    is_narrow = filters.keys() & {"type", "flow"}
    sums = {_SELECTED: dict[str, str]()} if is_narrow else _SUMS[get_owner_type(request)]
    found = {
        label: await _get_totals(request, {**period, **filters, **own})
        for label, own in sums.items()
    }
    if _BANK_PAYOUTS in found:
        returned = {"type": TransactionType.PAYOUT_RETURN.value}
        returns = await _get_totals(request, {**period, **filters, **returned})
        found[_BANK_PAYOUTS] = _subtract(found[_BANK_PAYOUTS], returns)
    return _Sums(name, found)


def _get_totals(request: PageRequest, filters: Mapping[str, str]) -> Awaitable[Any]:
    return request.get(f"{_LIST_PATH}/totals", filters)


def _subtract(totals: dict[str, Any], returned: dict[str, Any]) -> dict[str, Any]:
    """Return the totals of payouts without those that came back, each with its fee."""
    return {
        **totals,
        "count": totals["count"] - returned["count"],
        "is_complete": totals["is_complete"] and returned["is_complete"],
        **{
            name: f"{Decimal(totals[name]) - Decimal(returned[name]):f}"
            for name in ("amount", "fees")
        },
    }


pages.get(f"{PORTAL}/transactions/export")(transactions.export_transactions)


@pages.get(f"{PORTAL}/transactions/{{id}}")
async def show_payment(request: PageRequest, id: str) -> Reply[bytes]:
    record = await request.get(_ITEM_PATH, id=id)
    possible = list_possible_actions(record)
    story = tell_transaction(request.translator, record)
    services = request.context.services
    contested = await request.get_if_allowed(_DISPUTES_PATH, {"transaction_id": id})
    dispute = contested["data"][0] if contested and contested["data"] else None
    return request.render(
        "portal/payment.html",
        transaction=record,
        story=story,
        dispute=dispute,
        dispute_step=None if dispute is None else tell_dispute(request, dispute),
        refund=possible.get(_REFUND),
        refundable=get_refundable_amount(record) if _REFUND in possible else None,
        terminal_name=await find_terminal_name(request, record),
        address=f"{services.settings.public_url}{request.context.path}",
        receipt=_write_receipt(request, record, story),
    )


def _write_receipt(request: PageRequest, record: dict[str, Any], story: str) -> str:
    """Return a payment as text, to send to the customer."""
    moment = datetime.fromisoformat(record["completed_at"] or record["created_at"])
    parts = [
        request.branding["name"],
        story,
        f"{moment.astimezone(request.zone):%Y-%m-%d %H:%M}",
        record["approval_code"],
        record["id"],
    ]
    return "\n".join(part for part in parts if part)


async def find_payment(request: PageRequest, id: str) -> dict[str, Any] | None:
    """Return a payment, or None if it is not visible: cashiers see only recent ones."""
    try:
        record: dict[str, Any] = await request.get(_ITEM_PATH, id=id)
    except ApiError as error:
        if error.code != Code.TRANSACTION_NOT_FOUND:
            raise
        return None
    return record


async def find_terminal_name(request: PageRequest, record: dict[str, Any]) -> str | None:
    if record["terminal_id"] is None or not request.can_access(f"GET {TERMINALS_PATH}"):
        return None
    terminals = await request.get(
        TERMINALS_PATH, {"limit": _MAX_TERMINALS}, id=get_owner_id(request)
    )
    names = {terminal["id"]: terminal["name"] for terminal in terminals["data"]}
    return names.get(record["terminal_id"])
