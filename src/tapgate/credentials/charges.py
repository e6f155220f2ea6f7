"""What callers pay for expensive work before they have proven who they are."""

from typing import Protocol


class Charge(Protocol):
    async def charge(self) -> None:
        """Pay for the work, or raise 429."""

    async def refund(self) -> None:
        """Return the payment: the caller turned out to be genuine."""


class _NoCharge:
    async def charge(self) -> None:
        pass

    async def refund(self) -> None:
        pass


#: For work on behalf of the platform itself.
NO_CHARGE: Charge = _NoCharge()
