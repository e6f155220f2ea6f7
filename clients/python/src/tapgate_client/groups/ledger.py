"""Operations on the general ledger."""

from collections.abc import Sequence

from tapgate_client.declaration import M, OperationGroup, reads, sets
from tapgate_client.encoding import DateLike, DateTimeLike
from tapgate_client.responses import File
from tapgate_client.schemas.general_ledger import (
    GlCodes,
    GlCodeUpdate,
    LedgerAccounts,
    TrialBalance,
)


class GeneralLedger(OperationGroup[M]):
    @reads("GET /api/v1/ledger/gl-codes")
    def get_gl_codes(self) -> GlCodes: ...

    @sets("PUT /api/v1/ledger/gl-codes")
    def update_gl_codes(self, data: Sequence[GlCodeUpdate]) -> GlCodes:
        """Change the GL codes of the given account kinds. Other kinds keep their codes."""

    @reads("GET /api/v1/ledger/accounts")
    def get_accounts(self) -> LedgerAccounts:
        """Return the balances by account kind, including the platform's own accounts."""

    @reads("GET /api/v1/ledger/trial-balance")
    def get_trial_balance(self, *, as_of: DateTimeLike | None = None) -> TrialBalance:
        """Return the trial balance at a time or at the end of a day, by default now."""

    @reads("GET /api/v1/ledger/journal")
    def export_journal(
        self,
        day: DateLike | None = None,
        *,
        from_: DateLike | None = None,
        to: DateLike | None = None,
        format: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> File:
        """Export the journal of a day, or of at most 31 days `from_` a day `to` another.

        The format is `json`, `csv`, `hledger` or `beancount`.

        `limit` is the number of transactions per file, at most 20,000. If more exist, the file has
        a `next_cursor` to continue with.
        """
