"""KYC level limits: what they allow, and when a card payment requires the PIN."""

from typing import Final

import msgspec

#: How many times the no-PIN limit a card may spend per day without a PIN.
NO_PIN_DAILY_LIMIT_FACTOR: Final = 5


class AccountRule(msgspec.Struct, frozen=True, kw_only=True):
    """KYC level limits in minor units, and the requirements for reaching the level."""

    kyc_level: int
    max_balance: int
    max_transaction: int
    daily_limit: int
    monthly_limit: int
    no_pin_limit: int
    requirements: list[str]
    #: Above this amount, a card must sign its tap. None if no amount requires it.
    proof_required_above: int | None = None

    @classmethod
    def list_columns(cls) -> str:
        """Return the field names, which are also the column names, for a query."""
        return ", ".join(cls.__struct_fields__)

    def allows_amount(self, amount: int) -> bool:
        return amount <= self.max_transaction

    def allows_in_day(self, used: int, amount: int) -> bool:
        return used + amount <= self.daily_limit

    def allows_in_month(self, used: int, amount: int) -> bool:
        return used + amount <= self.monthly_limit

    def allows_balance(self, balance: int, credited: int) -> bool:
        return balance + credited <= self.max_balance

    def requires_proof(self, amount: int) -> bool:
        """Return whether a payment requires a card that signs its taps."""
        return self.proof_required_above is not None and amount > self.proof_required_above

    def requires_pin(self, amount: int, unpinned_today: int) -> bool:
        """Return whether a payment requires the PIN, given today's payments without a PIN."""
        limit = self.no_pin_limit
        return amount > limit or unpinned_today + amount > NO_PIN_DAILY_LIMIT_FACTOR * limit
