"""Row keys that a batch needs."""

from collections.abc import Sequence
from typing import Any

from tapgate.ledger import chart
from tapgate.ledger.commands import (
    BatchLine,
    Command,
    LedgerCommand,
    Party,
    RecallDecision,
    RecallRequest,
    Reversal,
    ReviewDecision,
    ScopedIdempotencyKey,
)
from tapgate.ledger.decisions.state import StoredPayout
from tapgate.runtime.store.id_ranges import add_range

#: A separate statement, because its plan opens all transaction partitions. Few batches need it.
_FIND_TRANSACTION_ACCOUNTS = """
    SELECT unnest(ARRAY[from_account, to_account,
                        CASE WHEN left(type, 10) = 'agent_cash' THEN (
                            SELECT commission_account_id FROM agents
                            WHERE account_id = CASE type WHEN 'agent_cashin' THEN from_account
                                                         ELSE to_account END) END])
    FROM transactions WHERE id = ANY ($1::bigint[]) AND id >= $2 AND id <= $3"""


class BatchKeys:
    """Keys of all rows that a batch's commands refer to."""

    def __init__(self, commands: Sequence[LedgerCommand]) -> None:
        self.card_serials: set[str] = set()
        self.owner_ids: set[int] = set()
        self.account_ids: set[int] = set()
        self.merchant_ids: set[int] = set()
        self.transaction_ids: set[int] = set()
        self.undone_ids: set[int] = set()  # transactions to reverse or recall
        self._may_debit_merchants = False
        self.request_keys: set[tuple[str, str]] = set()
        self.lookup_keys: set[tuple[str, str]] = set()  # may have former scopes; read, not locked
        self.partner_references: set[tuple[int, str]] = set()
        self.payout_ids: set[int] = set()
        self.payouts: dict[int, StoredPayout] = {}  # set by the load, under lock
        self.batch_lines: set[BatchLine] = set()
        self.reviewed_ids: set[int] = set()  # transactions of review decisions
        self.payable_lines: set[BatchLine] = set()  # set by the load, under lock
        self.held_lines: dict[int, BatchLine] = {}  # set by the load, under lock
        for command in commands:
            if isinstance(command, Command):
                self._add_command(command)
            else:
                self._add_decision(command)
        if self._may_debit_merchants:
            self.owner_ids |= self.merchant_ids
            self.merchant_ids.clear()

    @property
    def has_only_cards(self) -> bool:
        """Whether cards identify all parties, except merchants and the platform's own accounts."""
        return not (self.owner_ids or self.account_ids or self.transaction_ids or self.payout_ids)

    def _add_command(self, command: Command) -> None:
        if command.payout_change is not None:
            # The payout names the parties, once it is loaded.
            self.payout_ids.add(command.payout_change.payout_id)
            self._may_debit_merchants = True
            self._add_key(command.idempotency_key)
            return
        if command.batch_line is not None:
            self.batch_lines.add(command.batch_line)
        self._add_party(command.payer)
        if command.type in chart.PAYMENT_TYPES and command.payee.by == "owner":
            self.merchant_ids.add(int(command.payee.key))
        else:
            self._add_party(command.payee)
        if command.original_id is not None:
            self.transaction_ids.add(command.original_id)
        self._add_key(command.idempotency_key)
        if command.reference is not None:
            self.partner_references.add((command.reference.partner_id, command.reference.reference))

    def _add_decision(
        self, command: ReviewDecision | Reversal | RecallRequest | RecallDecision
    ) -> None:
        """Add a command about an existing transaction."""
        self._may_debit_merchants = True
        if isinstance(command, ReviewDecision):
            self.transaction_ids.add(command.transaction_id)
            self.reviewed_ids.add(command.transaction_id)
            return
        self.undone_ids.add(
            command.original_id if isinstance(command, Reversal) else command.transaction_id
        )
        self.transaction_ids |= self.undone_ids
        if not isinstance(command, RecallDecision):
            self._add_key(command.idempotency_key)

    def _add_key(self, key: ScopedIdempotencyKey | None) -> None:
        if key is not None:
            self.request_keys.add((key.scope, key.request_id))
            self.lookup_keys.update((scope, key.request_id) for scope in key.lookup_scopes)

    def _add_party(self, party: Party) -> None:
        if party.by == "card":
            self.card_serials.add(str(party.key))
        elif party.by == "account":
            self.account_ids.add(int(party.key))
            self._may_debit_merchants = True  # the account may be a merchant's
        elif party.kind not in chart.PLATFORM_ACCOUNT_KINDS:
            self.owner_ids.add(int(party.key))
            self._may_debit_merchants |= party.kind == chart.SETTLEMENT

    async def get_account_arguments(self, tx: Any) -> tuple[list[Any], ...]:
        """Return the query arguments that select the accounts."""
        rows: list[Any] = []
        if self.transaction_ids:
            rows = await tx.fetch(_FIND_TRANSACTION_ACCOUNTS, *add_range(self.transaction_ids))
        return (
            list(self.card_serials),
            list(self.owner_ids),
            list(self.account_ids),
            [row[0] for row in rows],
            list(self.merchant_ids),
        )

    def get_lock_names(self) -> list[str]:
        """Return the advisory lock names for idempotency keys and partner references."""
        return [f"{scope} {key}" for scope, key in (*self.request_keys, *self.partner_references)]
