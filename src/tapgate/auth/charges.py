"""Rate limit charges for expensive work done before the caller is authenticated."""

from typing import Protocol


class Charge(Protocol):
    async def charge(self) -> None:
        """Take a token for the work, or raise 429 if the rate limit is exhausted."""

    async def refund(self) -> None:
        """Give the token back, because the caller is legitimate or the work was not done."""


class _NoCharge:
    async def charge(self) -> None:
        pass

    async def refund(self) -> None:
        pass


#: For work that is not charged to a client address.
NO_CHARGE: Charge = _NoCharge()
