"""Operations on account limits per KYC level, fees and commissions."""

from collections.abc import Sequence

from tapgate.client.encoding import Money, encode_optional_amount, omit_none
from tapgate.client.operation import M, Operation, OperationGroup, build_get, build_put, operation
from tapgate.client.records.rules import (
    AccountRule,
    CommissionRule,
    CommissionRules,
    FeeRule,
    FeeRules,
)

_ACCOUNT_RULE_PATH = "/api/v1/account-rules/{kyc_level}"
_FEE_RULES_PATH = "/api/v1/fee-rules"
_COMMISSION_RULES_PATH = "/api/v1/commission-rules"


class AccountRules(OperationGroup[M]):
    @operation
    def get(self, kyc_level: int) -> Operation[AccountRule]:
        return build_get(_ACCOUNT_RULE_PATH, AccountRule, kyc_level=str(kyc_level))

    @operation
    def update(
        self,
        kyc_level: int,
        *,
        max_balance: Money | None = None,
        max_transaction: Money | None = None,
        daily_limit: Money | None = None,
        monthly_limit: Money | None = None,
        no_pin_limit: Money | None = None,
        requirements: Sequence[str] | None = None,
        currency: str | None = None,
    ) -> Operation[AccountRule]:
        """Update the given fields of a KYC level's limits."""
        body = omit_none(
            max_balance=encode_optional_amount(max_balance),
            max_transaction=encode_optional_amount(max_transaction),
            daily_limit=encode_optional_amount(daily_limit),
            monthly_limit=encode_optional_amount(monthly_limit),
            no_pin_limit=encode_optional_amount(no_pin_limit),
            requirements=requirements,
            currency=currency,
        )
        return build_put(_ACCOUNT_RULE_PATH, AccountRule, body, kyc_level=str(kyc_level))


class FeeRulesGroup(OperationGroup[M]):
    @operation
    def get(self) -> Operation[FeeRules]:
        return build_get(_FEE_RULES_PATH, FeeRules)

    @operation
    def replace(self, data: Sequence[FeeRule]) -> Operation[FeeRules]:
        """Replace the fee rules of all transaction types."""
        return build_put(_FEE_RULES_PATH, FeeRules, omit_none(data=data))

    @operation
    def replace_type(self, type: str, data: Sequence[FeeRule]) -> Operation[FeeRules]:
        """Replace the fee rules of one transaction type."""
        return build_put(f"{_FEE_RULES_PATH}/{{type}}", FeeRules, omit_none(data=data), type=type)


class CommissionRulesGroup(OperationGroup[M]):
    @operation
    def get(self) -> Operation[CommissionRules]:
        return build_get(_COMMISSION_RULES_PATH, CommissionRules)

    @operation
    def replace(self, data: Sequence[CommissionRule]) -> Operation[CommissionRules]:
        """Replace all commission rules. A tier without a rule earns no commission."""
        return build_put(_COMMISSION_RULES_PATH, CommissionRules, omit_none(data=data))
