"""Confirmation of a cash-out that an agent has asked for, by the customer."""

from datetime import datetime
from typing import Final

from tapgate.messenger.conversation.commands.common_steps import SUBSCRIBER_STEPS
from tapgate.messenger.conversation.steps import ConfirmStep, Next, PinStep, RequestStep, Script
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.gateway_requests import client_request, money_request
from tapgate.messenger.model import RequestRejected
from tapgate_client.errors import Code
from tapgate_client.schemas.agents import CashReceipt
from tapgate_client.schemas.cash_out_requests import CashOutRequestRecord, OpenCashOutRequests
from tapgate_client.schemas.transactions import TransactionStatus


def _store_request(turn: Turn, found: OpenCashOutRequests) -> Next:
    if not found.data:
        return turn.finish("confirm_cash_out.none", "menu")
    item = found.data[0]
    turn.set_facts(
        id=item.id,
        agent=item.agent_name,
        amount=turn.format_money(item.amount, item.currency),
        until=turn.format_datetime(datetime.fromisoformat(item.expires_at)),
    )
    return "on"


def _render(turn: Turn, key: str) -> str:
    return turn.translate(key, **turn.facts)


def _is_confirmed(turn: Turn) -> bool:
    """Return whether the PIN may be needed: true until the customer has declined."""
    return turn.facts.get("confirmed") != "no"


def _handle_paid(turn: Turn, receipt: CashReceipt) -> Next:
    is_completed = receipt.status == TransactionStatus.COMPLETED
    text = turn.translate(
        "confirm_cash_out.done" if is_completed else "confirm_cash_out.under_review",
        amount=turn.facts["amount"],
        agent=turn.facts["agent"],
        balance=turn.localize_money(receipt.subscriber_balance),
        transaction=receipt.transaction_id,
    )
    return turn.suggest_commands(text, "balance", "history", "menu")


def _handle_declined(turn: Turn, item: CashOutRequestRecord) -> Next:
    return turn.finish("confirm_cash_out.declined", "balance", "person", "menu")


def _handle_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    """After a rejected attempt without a response, the first one may have been executed."""
    if error.code == Code.CASH_OUT_REQUEST_NOT_OPEN and turn.conversation.uncertain:
        return turn.finish("confirm_cash_out.unknown", "history", "balance", "menu")
    return None


SCRIPTS: Final = (
    Script(
        command="confirm_cash_out",
        steps=(
            *SUBSCRIBER_STEPS,
            RequestStep(
                name="request",
                build_request=lambda turn: client_request(
                    "cash_out_requests.list_open_cash_out_requests", turn.subscriber.id
                ),
                on_success=_store_request,
            ),
            ConfirmStep(
                name="confirmed",
                accepts_no=True,
                prompt=lambda turn: _render(turn, "confirm_cash_out.confirm"),
            ),
            PinStep(
                name="done",
                is_needed=_is_confirmed,
                prompt=lambda turn: _render(turn, "confirm_cash_out.pin"),
                build_request=lambda turn, pins: money_request(
                    "cash_out_requests.confirm_cash_out",
                    turn.facts["id"],
                    pin=pins.pin,
                    request_id=turn.conversation.operation,
                ),
                on_success=_handle_paid,
                on_rejection=_handle_rejected,
                moves_money=True,
                uncertain_key="agent.uncertain",
            ),
            RequestStep(
                name="declined",
                build_request=lambda turn: client_request(
                    "cash_out_requests.decline_cash_out", turn.facts["id"]
                ),
                on_success=_handle_declined,
            ),
        ),
    ),
)
