"""Proofs that a payment is part of a closed day, as links to the page that checks them."""

from typing import Final

from tapgate.messenger.conversation.commands.common_steps import SUBSCRIBER_STEPS
from tapgate.messenger.conversation.commands.undo import (
    MAX_LISTED,
    get_chosen,
    list_choices,
    set_choices,
)
from tapgate.messenger.conversation.steps import AskStep, Next, RequestStep, Script
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.gateway_requests import GetProof, ListTransactions, TransactionSummary
from tapgate.messenger.model import RequestRejected
from tapgate_client.errors import Code
from tapgate_client.schemas.transactions import TransactionStatus

#: Newest transactions among which payments of earlier days are looked for.
_MAX_READ: Final = 50
_NOT_POSTED: Final = (TransactionStatus.FAILED, TransactionStatus.UNDER_REVIEW)


def has_proof(turn: Turn, transaction: TransactionSummary) -> bool:
    """Return whether a payment is complete and of an earlier day, which is probably closed."""
    now = turn.context.now
    is_earlier = transaction.at.astimezone(now.tzinfo).date() < now.date()
    return is_earlier and transaction.status not in _NOT_POSTED


def _offer_payments(turn: Turn, transactions: list[TransactionSummary]) -> Next:
    payments = [item for item in transactions if has_proof(turn, item)]
    if not payments:
        return turn.finish("proof.none", "history", "menu")
    set_choices(turn, payments[:MAX_LISTED])
    return "on"


def _reply_with_proof(turn: Turn, packed: str) -> Next:
    turn.add_reply(
        "proof.link",
        amount=get_chosen(turn, "amount"),
        at=get_chosen(turn, "at"),
        link=f"{turn.context.verify_page_url}#{packed}",
    )
    return "end"


def _handle_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code != Code.DAY_NOT_CLOSED:
        return None
    return turn.finish("proof.not_closed", "history", "menu")


SCRIPTS: Final = (
    Script(
        command="proof",
        steps=(
            *SUBSCRIBER_STEPS,
            RequestStep(
                name="payments",
                build_request=lambda turn: ListTransactions(
                    subscriber_id=turn.subscriber.id, limit=_MAX_READ
                ),
                on_success=_offer_payments,
            ),
            AskStep(
                name="chosen",
                prompt=lambda turn: turn.translate("proof.choose"),
                choices=list_choices,
            ),
            RequestStep(
                name="proof",
                build_request=lambda turn: GetProof(transaction_id=turn.facts["chosen"]),
                on_success=_reply_with_proof,
                on_rejection=_handle_rejected,
            ),
        ),
    ),
)
