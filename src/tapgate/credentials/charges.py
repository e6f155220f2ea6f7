"""Rate limit charges for expensive work done before the caller is authenticated."""

from typing import Protocol


class Charge(Protocol):
    async def charge(self) -> None:
        """Charge for the work, or raise 429 if the caller's rate limit is exhausted."""

    async def refund(self) -> None:
        """Refund the charge, because the caller is legitimate or the work was not done."""


class _NoCharge:
    async def charge(self) -> None:
        pass

    async def refund(self) -> None:
        pass


#: For work on behalf of the platform itself.
NO_CHARGE: Charge = _NoCharge()
