"""Rate limit cost for expensive work done before the caller is authenticated."""

from typing import Protocol


class RateLimitCost(Protocol):
    async def take(self) -> None:
        """Take a token for the work, or raise 429 if the rate limit is exhausted."""

    async def refund(self) -> None:
        """Give the token back, because the caller is legitimate or the work was not done."""


class _NoCost:
    async def take(self) -> None:
        pass

    async def refund(self) -> None:
        pass


#: For work that costs the client address nothing.
NO_COST: RateLimitCost = _NoCost()
