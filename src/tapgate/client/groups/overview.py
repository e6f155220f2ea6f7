"""Operations on the platform overview, search and ledger verification."""

from tapgate.client.declaration import M, OperationGroup, acts, reads
from tapgate.schemas.reporting import LedgerProof, Overview
from tapgate.schemas.search import SearchResults


class OverviewGroup(OperationGroup[M]):
    @reads("GET /api/v1/overview")
    def get(self, *, period: str | None = None) -> Overview:
        """Return platform metrics: the last `day` by hour, or the last `week` or `month` by day."""

    @reads("GET /api/v1/search")
    def search(
        self, *, q: str, types: str | None = None, limit: int | None = None
    ) -> SearchResults:
        """Search records of all kinds by name, phone number, ID, card, code or reference."""

    @acts("POST /api/v1/ledger/verify")
    def verify_ledger(self) -> LedgerProof:
        """Verify the integrity of the ledger now. This may take a long time."""
