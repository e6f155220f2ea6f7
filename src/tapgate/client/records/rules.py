"""Fee rule, commission rule and account limit records."""

from tapgate.client.records.base import Record


class FeeRule(Record, frozen=True, kw_only=True):
    """Fee rate for amounts up to `up_to`. If this is None, there is no upper bound."""

    type: str
    up_to: str | None = None
    rate: str
    payer: str


class FeeRules(Record, frozen=True, kw_only=True):
    data: list[FeeRule]


class CommissionRule(Record, frozen=True, kw_only=True):
    """Commission rate of an agent tier for a cash-in or cash-out of at least `minimum_amount`."""

    type: str
    tier: int
    rate: str
    minimum_amount: str


class CommissionRules(Record, frozen=True, kw_only=True):
    data: list[CommissionRule]


class AccountRule(Record, frozen=True, kw_only=True):
    """Account limits of a KYC level."""

    kyc_level: int
    currency: str
    max_balance: str
    max_transaction: str
    daily_limit: str
    monthly_limit: str
    no_pin_limit: str
    requirements: list[str]
