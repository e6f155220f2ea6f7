"""Operations on the platform overview, search and ledger verification."""

from tapgate_client.declaration import M, OperationGroup, acts, reads
from tapgate_client.schemas.reporting import LedgerProof, Onboarding, Overview
from tapgate_client.schemas.search import SearchResults
from tapgate_client.schemas.work_queues import WorkQueues


class OverviewGroup(OperationGroup[M]):
    @reads("GET /api/v1/overview")
    def get(self, *, period: str | None = None) -> Overview:
        """Return platform metrics: the last `day` by hour, or the last `week` or `month` by day."""

    @reads("GET /api/v1/work-queues")
    def get_work_queues(self, *, fresh: bool | None = None) -> WorkQueues:
        """Return the number of items in each work queue, counted up to 100."""

    @reads("GET /api/v1/admin/onboarding")
    def get_onboarding(self) -> Onboarding:
        """Return the steps of setting up a new installation."""

    @acts("POST /api/v1/admin/onboarding/dismiss")
    def dismiss_onboarding(self) -> Onboarding: ...

    @acts("POST /api/v1/admin/onboarding/{step}/skip")
    def skip_onboarding_step(self, step: str, /) -> Onboarding: ...

    @reads("GET /api/v1/search")
    def search(
        self, *, q: str, types: str | None = None, limit: int | None = None
    ) -> SearchResults:
        """Search records of all kinds by name, phone number, ID, card, code or reference."""

    @acts("POST /api/v1/ledger/verify")
    def verify_ledger(self) -> LedgerProof:
        """Verify the integrity of the ledger now. This may take a long time."""
