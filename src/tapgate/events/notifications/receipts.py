"""Worker that enqueues the messages for each notice from the ledger.

The ledger inserts a notice for each receipt, for each party in a reviewed transaction, for each
party whose money an admin moved and for each agent whose float is low. The worker deletes the
notice in the database transaction that writes the message, so each message is enqueued exactly
once, even if the process is killed. Any number of processes may run the worker, because locked
notices are skipped.
"""

from collections.abc import Mapping, Set
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn

import msgspec

from tapgate.auth.disclosure import find_hidden_accounts
from tapgate.core.id_generator import get_time_sql
from tapgate.core.message_templates import TEMPLATES
from tapgate.core.public_names import clean_business_name, get_counterparty_name
from tapgate.core.settings.business import Receipts
from tapgate.core.vault import Vault
from tapgate.events.notifications.notification_messages import (
    Message,
    MessageSender,
    enqueue_messages,
)
from tapgate.http.api.services import Services
from tapgate.ledger import chart
from tapgate.ledger.effects.pending_notifications import (
    FLOAT_LOW,
    MONEY_CORRECTED,
    MONEY_RECEIVED,
    PAYMENT_MADE,
    PAYMENT_REJECTED,
    PAYMENT_RELEASED,
)
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.transaction import Transaction
from tapgate.runtime.store.work_queue import build_backlog_sql, build_dequeue_sql
from tapgate_client import ids, money
from tapgate_client.schemas.subscribers import SubscriberLanguage

POLL_INTERVAL_SECONDS: Final = 0.5
BATCH_SIZE: Final = 200
#: For a receipt, counted from the transaction's completion. A subscriber who is offline for
#: longer finds the transaction in the transaction history.
MESSAGE_LIFETIME: Final = timedelta(hours=24)
#: The parties wait for the review outcome.
REVIEW_MESSAGE_LIFETIME: Final = timedelta(days=7)

_REVIEW_KINDS: Final = frozenset({PAYMENT_RELEASED, PAYMENT_REJECTED})
_ALWAYS_SENT: Final = _REVIEW_KINDS | {FLOAT_LOW, MONEY_CORRECTED}
#: Kinds sent under each value of the setting. A kind is also its template name.
KINDS_BY_SETTING: Final[Mapping[str, frozenset[str]]] = {
    Receipts.NO_MESSAGES: frozenset(),
    Receipts.OFF: _ALWAYS_SENT,
    Receipts.RECEIVED: _ALWAYS_SENT | {MONEY_RECEIVED},
    Receipts.ALL: _ALWAYS_SENT | {MONEY_RECEIVED, PAYMENT_MADE},
}

#: Counterparty in a message about a reviewed payment, by language and by whether the message's
#: recipient is the payer.
_COUNTERPARTY_TEXTS: Final[Mapping[str, Mapping[bool, str]]] = {
    SubscriberLanguage.EN: {True: "to {}", False: "from {}"},
    SubscriberLanguage.FR: {True: "à {}", False: "(expéditeur\u00a0: {})"},
}

#: What an admin did, by language, whether the recipient is the payer, and account kind.
_CORRECTION_TEXTS: Final[Mapping[str, Mapping[tuple[bool, str], str]]] = {
    SubscriberLanguage.EN: {
        (False, chart.WALLET): "added {} to your wallet",
        (True, chart.WALLET): "took {} from your wallet",
        (False, chart.FLOAT): "added {} to your float",
        (True, chart.FLOAT): "took {} from your float",
    },
    SubscriberLanguage.FR: {
        (False, chart.WALLET): "a ajouté {} à votre portefeuille",
        (True, chart.WALLET): "a prélevé {} sur votre portefeuille",
        (False, chart.FLOAT): "a ajouté {} à votre solde d'agent",
        (True, chart.FLOAT): "a prélevé {} sur votre solde d'agent",
    },
}

BACKLOG_SQL: Final = build_backlog_sql(
    "receipts",
    "notices",
    created=get_time_sql("transaction_id"),
    due=get_time_sql("transaction_id"),
)

#: The counterparty is named as on statements. The amount received may be less than the transaction
#: amount, because the receiver may pay a fee. The amount paid is the transaction amount, as in the
#: response to the payment. `subscriber_id` may be an agent's ID. An agent has no language of its
#: own, but may also be a subscriber. An agent that pays itself, as for commission, is the payee.
#: A low float is also reported to the super-agent, unless it is terminated.
_SELECT_SQL: Final = f"""
    SELECT taken.kind, taken.transaction_id, t.currency, t.completed_at, side.is_payer,
           coalesce(subscriber.phone_number, agent.phone_number) AS phone_number,
           coalesce(subscriber.language, also_subscriber.language, 'en') AS language,
           t.type IN ('{chart.POS_PAYMENT}', '{chart.ONLINE_PAYMENT}') AS is_disputable,
           own.public_name AS own_name, own.kind AS own_kind,
           coalesce(t.context ->> 'merchant_name', t.context ->> 'book_party') AS merchant_name,
           other.public_name,
           other.kind = '{chart.WALLET}' AS is_person,
           other.id AS other_account, other.owner_id AS other_owner,
           CASE WHEN side.is_payer OR t.completed_at IS NULL THEN t.amount ELSE (
               SELECT sum(CASE credit_account WHEN t.to_account THEN amount ELSE -amount END)
               FROM entries
               WHERE transaction_id = t.id AND t.to_account IN (credit_account, debit_account)
           ) END::bigint AS amount,
           float.public_name AS agent_name, super_agent.phone_number AS super_agent_phone,
           CASE float.id WHEN t.from_account THEN t.from_balance ELSE t.to_balance
           END AS float_balance
    FROM taken
    JOIN transactions t ON t.id = taken.transaction_id
    JOIN accounts payer ON payer.id = t.from_account
    JOIN accounts payee ON payee.id = t.to_account
    CROSS JOIN LATERAL (
        SELECT payer.owner_id IS NOT DISTINCT FROM taken.subscriber_id
           AND payer.owner_id IS DISTINCT FROM payee.owner_id AS is_payer) AS side
    JOIN accounts own
      ON own.id = CASE WHEN side.is_payer THEN t.from_account ELSE t.to_account END
    JOIN accounts other
      ON other.id = CASE WHEN side.is_payer THEN t.to_account ELSE t.from_account END
    LEFT JOIN subscribers subscriber ON subscriber.id = taken.subscriber_id
    LEFT JOIN agents agent ON agent.id = taken.subscriber_id
    LEFT JOIN subscribers also_subscriber
      ON subscriber.id IS NULL AND also_subscriber.phone_number = agent.phone_number
    LEFT JOIN accounts float ON float.id = agent.account_id
    LEFT JOIN agents super_agent
      ON super_agent.id = agent.parent_agent_id
     AND (SELECT status FROM accounts WHERE id = super_agent.account_id) <> 'closed'
    WHERE coalesce(subscriber.id, agent.id) IS NOT NULL
    ORDER BY taken.transaction_id, taken.kind, taken.subscriber_id"""
_DEQUEUE_SQL: Final = (
    build_dequeue_sql("notices", "transaction_id, kind, subscriber_id") + _SELECT_SQL
)
_RESEND_SQL: Final = f"""
    WITH taken AS (
        SELECT $1::bigint AS transaction_id, kind, subscriber_id
        FROM unnest($2::text[], $3::bigint[]) AS receipt (kind, subscriber_id))
    {_SELECT_SQL}"""


class ReceiptWorker:
    """Enqueues the messages, and passes them to `sender` while the messenger accepts messages."""

    def __init__(self, services: Services, sender: MessageSender | None = None) -> None:
        self._services = services
        self._sender = sender

    async def run(self) -> NoReturn:
        await run_periodically(
            self.enqueue_due, every=POLL_INTERVAL_SECONDS, name="notifications.receipts"
        )

    async def enqueue_due(self) -> None:
        while await self._enqueue_batch():
            pass

    async def _enqueue_batch(self) -> bool:
        """Enqueue a receipt batch; return whether more may be due.

        Messages that this process sends are enqueued with a lease, which saves leasing them later.
        """
        sender = self._sender if self._sender is not None and self._sender.is_accepting else None
        async with self._services.transaction() as tx:
            rows = await tx.fetch(_DEQUEUE_SQL, BATCH_SIZE)
            hidden = await find_hidden_accounts(
                tx, None, self._services.clock(), {row["other_account"] for row in rows}
            )
            now = tx.now()
            messages = [message for row in rows for message in _build_messages(row, hidden, now)]
            leased = await enqueue_messages(
                tx, self._services.vault, messages, is_leased=sender is not None
            )
        if sender is not None:
            await sender.send(leased)
        return len(rows) == BATCH_SIZE


async def resend_receipts(
    tx: Transaction, vault: Vault, transaction_id: int, holders: Mapping[str, int]
) -> None:
    """Send a completed transaction's receipts again, to account holders by kind of receipt."""
    rows = await tx.fetch(_RESEND_SQL, transaction_id, list(holders), list(holders.values()))
    hidden = await find_hidden_accounts(tx, None, tx.now(), {row["other_account"] for row in rows})
    messages = [
        msgspec.structs.replace(
            _build_payment_message(row, hidden, tx.now()), expires_at=tx.now() + MESSAGE_LIFETIME
        )
        for row in rows
    ]
    await enqueue_messages(tx, vault, messages)


def _build_messages(row: Mapping[str, Any], hidden: Set[int], now: datetime) -> list[Message]:
    match row["kind"]:
        case kind if kind == FLOAT_LOW:
            return _build_float_messages(row, now)
        case kind if kind == MONEY_CORRECTED:
            return [_build_correction_message(row, now)]
    return [_build_payment_message(row, hidden, now)]


def _build_correction_message(row: Mapping[str, Any], now: datetime) -> Message:
    language = row["language"]
    kind = chart.WALLET if row["own_kind"] == chart.WALLET else chart.FLOAT
    text = _CORRECTION_TEXTS[language][row["is_payer"], kind]
    return Message(
        to=row["phone_number"],
        template=MONEY_CORRECTED,
        parameters=[
            clean_business_name(row["own_name"]),
            text.format(money.format_money(row["amount"], row["currency"], language)),
            ids.encode(ids.TRANSACTION, row["transaction_id"]),
        ],
        language=language,
        expires_at=now + TEMPLATES[MONEY_CORRECTED].lifetime,
    )


def _build_float_messages(row: Mapping[str, Any], now: datetime) -> list[Message]:
    """Build the messages to the agent whose float is low and, if there is one, its super-agent."""
    return [
        Message(
            to=phone_number,
            template=FLOAT_LOW,
            parameters=[
                clean_business_name(row["agent_name"]),
                money.format_money(row["float_balance"], row["currency"]),
            ],
            expires_at=now + MESSAGE_LIFETIME,
        )
        for phone_number in (row["phone_number"], row["super_agent_phone"])
        if phone_number is not None
    ]


def _build_payment_message(row: Mapping[str, Any], hidden: Set[int], now: datetime) -> Message:
    """Build a receipt or the message about a reviewed payment.

    `hidden` contains restricted subscribers' accounts. Such subscribers are named only by id.
    """
    kind, language = row["kind"], row["language"]
    counterparty = get_counterparty_name(
        row["merchant_name"], row["public_name"], is_person=row["is_person"]
    )
    if row["other_account"] in hidden:
        counterparty = ids.encode(ids.SUBSCRIBER, row["other_owner"])
    if kind in _REVIEW_KINDS:
        counterparty = _COUNTERPARTY_TEXTS[language][row["is_payer"]].format(counterparty)
        expires_at = now + REVIEW_MESSAGE_LIFETIME
    else:
        expires_at = row["completed_at"] + MESSAGE_LIFETIME
    transaction_id = ids.encode(ids.TRANSACTION, row["transaction_id"])
    is_disputable = row["is_disputable"] and kind == PAYMENT_MADE
    return Message(
        to=row["phone_number"],
        template=kind,
        parameters=[
            money.format_money(row["amount"], row["currency"], language),
            counterparty,
            transaction_id,
        ],
        language=language,
        expires_at=expires_at,
        button=TEMPLATES[kind].name_buttons(transaction_id) if is_disputable else None,
    )
