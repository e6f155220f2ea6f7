"""Worker that enqueues a receipt message for each notice from the ledger.

The ledger inserts a notice for each receipt to send. The worker deletes the notice in the database
transaction that writes the message, so each message is enqueued exactly once, even if the process
is killed. Any number of processes may run the worker, because locked notices are skipped.
"""

from collections.abc import Mapping, Set
from datetime import timedelta
from typing import Any, Final, NoReturn

from tapgate import ids, money
from tapgate.api.services import Services
from tapgate.auth.disclosure import find_hidden_accounts
from tapgate.ledger.receipts import MONEY_RECEIVED, PAYMENT_MADE
from tapgate.notifications.messages import Message, enqueue_messages
from tapgate.runtime.background import run_periodically
from tapgate.settings import ALL_RECEIPTS, NO_RECEIPTS, RECEIVED_RECEIPTS
from tapgate.store.work_queue import build_dequeue_sql

POLL_INTERVAL_SECONDS: Final = 0.5
BATCH_SIZE: Final = 200
#: Counted from the completion of the transaction. A subscriber who is offline for longer finds the
#: transaction in the transaction history.
MESSAGE_LIFETIME: Final = timedelta(hours=24)

#: Receipt kinds sent under each value of the setting. A kind is also the name of its template.
KINDS_BY_SETTING: Final[Mapping[str, frozenset[str]]] = {
    NO_RECEIPTS: frozenset(),
    RECEIVED_RECEIPTS: frozenset({MONEY_RECEIVED}),
    ALL_RECEIPTS: frozenset({MONEY_RECEIVED, PAYMENT_MADE}),
}

#: The counterparty is named as on statements. The amount received may be less than the transaction
#: amount, because the receiver may pay a fee. The amount paid is the transaction amount, as in the
#: response to the payment.
_DEQUEUE_SQL: Final = f"""{build_dequeue_sql("notices", "transaction_id, kind")}
    SELECT taken.kind, taken.transaction_id, subscriber.phone_number, t.currency, t.completed_at,
           coalesce(t.context ->> 'merchant_name', other.public_name) AS counterparty,
           other.id AS other_account, other.owner_id AS other_owner,
           CASE taken.kind WHEN '{PAYMENT_MADE}' THEN t.amount ELSE (
               SELECT sum(CASE credit_account WHEN t.to_account THEN amount ELSE -amount END)
               FROM entries
               WHERE transaction_id = t.id AND t.to_account IN (credit_account, debit_account)
           ) END::bigint AS amount
    FROM taken
    JOIN subscribers subscriber ON subscriber.id = taken.subscriber_id
    JOIN transactions t ON t.id = taken.transaction_id
    JOIN accounts other ON other.id =
        CASE taken.kind WHEN '{PAYMENT_MADE}' THEN t.to_account ELSE t.from_account END
    ORDER BY taken.transaction_id, taken.kind"""


class ReceiptWorker:
    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self) -> NoReturn:
        await run_periodically(
            self.enqueue_due, every=POLL_INTERVAL_SECONDS, name="notifications.receipts"
        )

    async def enqueue_due(self) -> None:
        while await self._enqueue_batch():
            pass

    async def _enqueue_batch(self) -> bool:
        """Enqueue one batch of receipts; return whether more may be due."""
        async with self._services.transaction() as tx:
            rows = await tx.fetch(_DEQUEUE_SQL, BATCH_SIZE)
            hidden = await find_hidden_accounts(
                tx, None, self._services.clock(), {row["other_account"] for row in rows}
            )
            await enqueue_messages(
                tx, self._services.vault, [_build_message(row, hidden) for row in rows]
            )
        return len(rows) == BATCH_SIZE


def _build_message(row: Mapping[str, Any], hidden: Set[int]) -> Message:
    """Build the message for a notice.

    `hidden` contains the accounts of restricted subscribers, who are named only by subscriber id.
    """
    counterparty = " ".join(row["counterparty"].split())  # templates allow no line breaks
    if row["other_account"] in hidden:
        counterparty = ids.encode(ids.SUBSCRIBER, row["other_owner"])
    return Message(
        to=row["phone_number"],
        template=row["kind"],
        parameters=[
            money.format_money(row["amount"], row["currency"]),
            counterparty,
            ids.encode(ids.TRANSACTION, row["transaction_id"]),
        ],
        expires_at=row["completed_at"] + MESSAGE_LIFETIME,
    )
