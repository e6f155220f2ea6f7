"""The platform as a whole."""

from tapgate.client.encoding import omit_none
from tapgate.client.operation import M, Operation, OperationGroup, build_get, build_post, operation
from tapgate.client.records.overview import LedgerProof, Overview


class OverviewGroup(OperationGroup[M]):
    @operation
    def get(self, *, period: str | None = None) -> Operation[Overview]:
        """How it is doing: the last `day` by hour, or the last `week` or `month` by day."""
        return build_get("/api/v1/overview", Overview, query=omit_none(period=period))

    @operation
    def verify_ledger(self) -> Operation[LedgerProof]:
        """Proves the books now, which may take long."""
        return build_post("/api/v1/ledger/verify", LedgerProof)
