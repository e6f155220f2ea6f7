"""The limits of KYC levels, fees and commissions."""

from collections.abc import Sequence

from tapgate.client.operation import Group, M, Operation, operation, put, read
from tapgate.client.records.rules import (
    AccountRule,
    CommissionRule,
    CommissionRules,
    FeeRules,
    FeeStep,
)
from tapgate.client.values import Money, given, money_or_none

_LEVEL = "/api/v1/account-rules/{kyc_level}"
_FEES = "/api/v1/fee-rules"
_COMMISSIONS = "/api/v1/commission-rules"


class AccountRules(Group[M]):
    @operation
    def get(self, kyc_level: int) -> Operation[AccountRule]:
        return read(_LEVEL, AccountRule, kyc_level=str(kyc_level))

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
        """What is left out stays as it is."""
        body = given(
            max_balance=money_or_none(max_balance),
            max_transaction=money_or_none(max_transaction),
            daily_limit=money_or_none(daily_limit),
            monthly_limit=money_or_none(monthly_limit),
            no_pin_limit=money_or_none(no_pin_limit),
            requirements=requirements,
            currency=currency,
        )
        return put(_LEVEL, AccountRule, body, kyc_level=str(kyc_level))


class Fees(Group[M]):
    @operation
    def get(self) -> Operation[FeeRules]:
        return read(_FEES, FeeRules)

    @operation
    def replace(self, data: Sequence[FeeStep]) -> Operation[FeeRules]:
        """All of them at once."""
        return put(_FEES, FeeRules, given(data=data))

    @operation
    def replace_type(self, type: str, data: Sequence[FeeStep]) -> Operation[FeeRules]:
        """Those of one type; the others stay as they are."""
        return put(f"{_FEES}/{{type}}", FeeRules, given(data=data), type=type)


class Commissions(Group[M]):
    @operation
    def get(self) -> Operation[CommissionRules]:
        return read(_COMMISSIONS, CommissionRules)

    @operation
    def replace(self, data: Sequence[CommissionRule]) -> Operation[CommissionRules]:
        """Replace all rules; a tier without one earns nothing."""
        return put(_COMMISSIONS, CommissionRules, given(data=data))
