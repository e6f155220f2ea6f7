"""Actions on a transaction: each is one declaration with its form, types and statuses.

The action's endpoint decides which roles see its button. To add an action, declare it here.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from tapgate.ledger import chart
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.form_fields import Field
from tapgate_client.schemas.disputes import DisputeReason
from tapgate_client.schemas.transactions import TransactionParty, TransactionStatus, TransactionType

_ITEM_PATH: Final = "/api/v1/transactions/{id}"
_PAID_STATUSES: Final = frozenset(
    {TransactionStatus.COMPLETED, TransactionStatus.PARTIALLY_REFUNDED}
)
_REVERSIBLE_STATUSES: Final = frozenset(
    {TransactionStatus.COMPLETED, TransactionStatus.PARTIALLY_REVERSED}
)
_MOVED_STATUSES: Final = (
    _PAID_STATUSES | _REVERSIBLE_STATUSES | {TransactionStatus.REFUNDED, TransactionStatus.REVERSED}
)
_RECEIPT_TYPES: Final = chart.LIMITED_TYPES | chart.RECEIVE_ONLY_TYPES | {chart.REFUND}

RECALL: Final = "transaction.recall"

Record = Mapping[str, Any]


class TransactionAction(NamedTuple):
    """Action that is possible for transactions with these types and statuses.

    `initial` returns initial values of the form's fields.
    """

    action: Action
    types: frozenset[TransactionType]
    statuses: frozenset[TransactionStatus]
    initial: Callable[[Record], Mapping[str, str]] = lambda record: {}

    def is_possible(self, record: Record) -> bool:
        return record["type"] in self.types and record["status"] in self.statuses


def get_refundable_amount(record: Record) -> str:
    """Return the part of a payment's amount that is not refunded."""
    return f"{Decimal(record['amount']) - Decimal(record['refunded_amount']):f}"


def get_reversible_amount(record: Record) -> str:
    """Return the part of a transaction's amount that is not reversed."""
    return f"{Decimal(record['amount']) - Decimal(record['reversed_amount']):f}"


TRANSACTION_ACTIONS: Final = (
    TransactionAction(
        Action(
            name="transaction.refund",
            endpoint=f"POST {_ITEM_PATH}/refund",
            title="Refund payment",
            description="Returns money from the merchant's balance to the customer's wallet. The "
            "last part of a refund also returns the fee to the merchant.",
            button="Refund",
            fields=(
                fields.AMOUNT._replace(
                    required=False, hint="Empty: everything that is not refunded yet"
                ),
                fields.REASON._replace(hint="On the refund, and saved in the audit log"),
            ),
            moves_money=True,
            preview_path=_ITEM_PATH,
            preview_template="transactions/refund_preview.html",
            success_message="Payment refunded.",
        ),
        types=frozenset(chart.PAYMENT_TYPES),
        statuses=_PAID_STATUSES,
        initial=lambda record: {"amount": get_refundable_amount(record)},
    ),
    TransactionAction(
        Action(
            name="dispute.create",
            endpoint="POST /api/v1/disputes",
            title="Dispute payment",
            description="Contests the payment for the customer. The merchant has 7 days to answer, "
            "then compliance decides.",
            button="Dispute",
            fields=(
                Field("transaction_id", kind="hidden"),
                Field("reason", kind="choice", choices=tuple(DisputeReason)),
                Field("description", "What happened", "long", required=False),
                fields.AMOUNT._replace(required=False, hint="Empty: the whole payment"),
            ),
            moves_money=True,
            preview_path=_ITEM_PATH,
            preview_template="transactions/dispute_preview.html",
            success_message="Dispute opened.",
        ),
        types=frozenset(chart.PAYMENT_TYPES),
        statuses=_PAID_STATUSES,
        initial=lambda record: {"transaction_id": record["id"]},
    ),
    TransactionAction(
        Action(
            name="transaction.reverse",
            endpoint=f"POST {_ITEM_PATH}/reverse",
            title="Reverse this transaction?",
            description="Moves the money back now, with the fee and the commission in proportion."
            " This can't be undone.",
            button="Reverse",
            fields=(
                fields.AMOUNT._replace(
                    required=False, hint="Empty: everything that is not reversed yet"
                ),
                fields.REASON._replace(hint="On the reversal, and saved in the audit log"),
            ),
            is_dangerous=True,
            moves_money=True,
            preview_path=f"{_ITEM_PATH}/reversal-preview",
            preview_template="transactions/reversal_preview.html",
            success_message="Transaction reversed.",
        ),
        types=chart.REVERSIBLE_TYPES,
        statuses=_REVERSIBLE_STATUSES,
        initial=lambda record: {"amount": get_reversible_amount(record)},
    ),
    TransactionAction(
        Action(
            name=RECALL,
            endpoint=f"POST {_ITEM_PATH}/recall",
            title="Recall this transfer?",
            description="Holds what the recipient still has, for up to 24 hours, and asks the"
            " recipient in the chat to return it. The fee is not returned. Only at the sender's"
            " request.",
            button="Recall",
            fields=(fields.REASON._replace(required=False, hint="Saved in the audit log"),),
            moves_money=True,
            preview_path=_ITEM_PATH,
            preview_template="transactions/recall_preview.html",
            success_message="Transfer recalled. The recipient is asked to return it.",
        ),
        types=frozenset({chart.TRANSFER_P2P}),
        statuses=frozenset({TransactionStatus.COMPLETED}),
    ),
    TransactionAction(
        Action(
            name="transaction.send_receipt",
            endpoint=f"POST {_ITEM_PATH}/send-receipt",
            title="Send the receipt again?",
            description="Sends the receipt to the customer's phone, in the customer's language. "
            "Merchants and agents get no receipts.",
            button="Send receipt",
            fields=(
                Field(
                    "party",
                    "Recipient",
                    "choice",
                    ((TransactionParty.SENDER, "Sender"), (TransactionParty.RECEIVER, "Recipient")),
                    hint="Empty: both, if both are customers",
                    required=False,
                ),
            ),
            sends_body=True,
            success_message="Receipt sent.",
        ),
        types=frozenset(_RECEIPT_TYPES),
        statuses=_MOVED_STATUSES,
    ),
)
ACTIONS: Final = tuple(each.action for each in TRANSACTION_ACTIONS)


def list_possible_actions(record: Record) -> dict[str, Mapping[str, str]]:
    """Return the possible actions' names with the initial values of their forms."""
    if record.get("masked"):
        return {}
    return {
        each.action.name: each.initial(record)
        for each in TRANSACTION_ACTIONS
        if each.is_possible(record)
    }
