"""Read operations on transactions."""

from tapgate_client.declaration import M, OperationGroup, lists, reads
from tapgate_client.encoding import DateTimeLike
from tapgate_client.responses import File
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.transactions import (
    TransactionChain,
    TransactionEntries,
    TransactionListTotals,
    TransactionRecord,
)


class Transactions(OperationGroup[M]):
    @lists("GET /api/v1/transactions")
    def list(
        self,
        *,
        user_id: str | None = None,
        card_serial: str | None = None,
        type: str | None = None,
        flow: str | None = None,
        status: str | None = None,
        failure_code: str | None = None,
        from_: DateTimeLike | None = None,
        to: DateTimeLike | None = None,
        order: str | None = None,
        limit: int | None = None,
    ) -> Page[TransactionRecord]:
        """List transactions, newest first. `limit` is the page size.

        `order` is `newest`, `oldest` or `amount`, which sorts the newest 10,000 transactions that
        match, largest first. `flow` is `payments`, `money_in`, `money_out`, `refunds` or
        `internal`.
        """

    @reads("GET /api/v1/transactions/totals")
    def get_totals(
        self,
        *,
        user_id: str | None = None,
        card_serial: str | None = None,
        type: str | None = None,
        flow: str | None = None,
        status: str | None = None,
        failure_code: str | None = None,
        from_: DateTimeLike | None = None,
        to: DateTimeLike | None = None,
    ) -> TransactionListTotals:
        """Return the totals of a list with these filters. Admins only."""

    @reads("GET /api/v1/transactions/export")
    def export(
        self,
        *,
        user_id: str | None = None,
        card_serial: str | None = None,
        type: str | None = None,
        flow: str | None = None,
        status: str | None = None,
        failure_code: str | None = None,
        from_: DateTimeLike | None = None,
        to: DateTimeLike | None = None,
        order: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> File:
        """Export transactions as CSV, newest first.

        `limit` is the number of transactions per file, at most 50,000. If more exist, the file has
        a `next_cursor` to continue with.
        """

    @reads("GET /api/v1/transactions/{id}")
    def get(self, id: str) -> TransactionRecord: ...

    @reads("GET /api/v1/transactions/{id}/entries")
    def get_entries(self, id: str) -> TransactionEntries:
        """Return the ledger entries of a transaction. Admins only."""

    @reads("GET /api/v1/transactions/{id}/chain")
    def get_chain(self, id: str) -> TransactionChain:
        """Return the related payment or refunds, and a summary of replays. Admins only."""
