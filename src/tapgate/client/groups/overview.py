"""Operations on the platform overview and the ledger."""

from tapgate.client.encoding import omit_none
from tapgate.client.operation import M, Operation, OperationGroup, build_get, build_post, operation
from tapgate.client.records.overview import LedgerProof, Overview


class OverviewGroup(OperationGroup[M]):
    @operation
    def get(self, *, period: str | None = None) -> Operation[Overview]:
        """Return platform metrics: the last `day` by hour, or the last `week` or `month` by day."""
        return build_get("/api/v1/overview", Overview, query=omit_none(period=period))

    @operation
    def verify_ledger(self) -> Operation[LedgerProof]:
        """Verify the integrity of the ledger now. This may take a long time."""
        return build_post("/api/v1/ledger/verify", LedgerProof)
