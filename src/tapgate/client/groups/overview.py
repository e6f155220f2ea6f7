"""The platform as a whole."""

from tapgate.client.operation import Group, M, Operation, act, operation, read
from tapgate.client.records.overview import LedgerProof, Overview
from tapgate.client.values import given


class OverviewGroup(Group[M]):
    @operation
    def get(self, *, period: str | None = None) -> Operation[Overview]:
        """How it is doing: the last `day` by hour, or the last `week` or `month` by day."""
        return read("/api/v1/overview", Overview, query=given(period=period))

    @operation
    def verify_ledger(self) -> Operation[LedgerProof]:
        """Proves the books now, which may take long."""
        return act("/api/v1/ledger/verify", LedgerProof)
