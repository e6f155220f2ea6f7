"""Rate limit costs per client address for work done before a caller is authenticated."""

from tapgate.http.api.request_context import RequestContext
from tapgate.http.rate_limits.throttle import Throttle, build_rate_limit_error
from tapgate.http.rate_limits.token_buckets import RateLimit
from tapgate.runtime.client_addresses import get_address_key

#: Failed logins per address: one per second. The burst allows for offices that share an address.
LOGIN_RATE_LIMIT = RateLimit(1, 30)


class LookupCost:
    """Token that a credential lookup or a failed authentication costs the client address.

    A request costs at most one token. The cost limits credential probing and the database
    load caused by unknown credentials.
    """

    __slots__ = ("_context", "_is_taken")

    def __init__(self, request: RequestContext) -> None:
        self._context = request
        self._is_taken = False

    @property
    def _bucket_key(self) -> str:
        return f"ip:{get_address_key(self._context.ip)}"

    async def take(self) -> None:
        if self._is_taken:
            return
        self._context.rate_limit_result = result = await self._context.services.throttle.take(
            self._bucket_key
        )
        if not result.is_allowed:
            raise build_rate_limit_error(result)
        self._is_taken = True

    async def refund(self) -> None:
        await self._context.services.throttle.refund(self._bucket_key)
        self._is_taken = False


class LoginCost:
    """Token that a failed login costs the client address, taken before the password check."""

    def __init__(self, throttle: Throttle, address: str) -> None:
        self._throttle = throttle
        self._bucket_key = f"login:{get_address_key(address)}"

    async def take(self) -> None:
        result = await self._throttle.take(self._bucket_key, LOGIN_RATE_LIMIT)
        if not result.is_allowed:
            raise build_rate_limit_error(
                result, "Too many failed logins from this IP address. Try again later."
            )

    async def refund(self) -> None:
        await self._throttle.refund(self._bucket_key, LOGIN_RATE_LIMIT)
