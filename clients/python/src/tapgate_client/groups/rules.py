"""Operations on account limits per KYC level, fees and commissions."""

from collections.abc import Sequence

from tapgate_client.declaration import M, OperationGroup, reads, sets
from tapgate_client.encoding import Money, PathNumber
from tapgate_client.schemas.compliance import AccountRuleRecord
from tapgate_client.schemas.fees import CommissionRule, CommissionRules, FeeRule, FeeRules


class AccountRules(OperationGroup[M]):
    @reads("GET /api/v1/account-rules/{kyc_level}")
    def get(self, kyc_level: PathNumber) -> AccountRuleRecord: ...

    @sets("PUT /api/v1/account-rules/{kyc_level}")
    def update(
        self,
        kyc_level: PathNumber,
        *,
        max_balance: Money | None = None,
        max_transaction: Money | None = None,
        daily_limit: Money | None = None,
        monthly_limit: Money | None = None,
        no_pin_limit: Money | None = None,
        proof_required_above: Money | None = None,
        requirements: Sequence[str] | None = None,
        currency: str | None = None,
    ) -> AccountRuleRecord:
        """Update the given fields of a KYC level's limits.

        An empty string clears `proof_required_above`.
        """


class FeeRulesGroup(OperationGroup[M]):
    @reads("GET /api/v1/fee-rules")
    def get(self) -> FeeRules: ...

    @sets("PUT /api/v1/fee-rules")
    def replace(self, data: Sequence[FeeRule]) -> FeeRules:
        """Replace the fee rules of all transaction types."""

    @sets("PUT /api/v1/fee-rules/{type}")
    def replace_type(self, type: str, data: Sequence[FeeRule]) -> FeeRules:
        """Replace the fee rules of one transaction type."""


class CommissionRulesGroup(OperationGroup[M]):
    @reads("GET /api/v1/commission-rules")
    def get(self) -> CommissionRules: ...

    @sets("PUT /api/v1/commission-rules")
    def replace(self, data: Sequence[CommissionRule]) -> CommissionRules:
        """Replace all commission rules. A tier without a rule earns no commission."""
