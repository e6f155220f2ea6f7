"""Charges for work that callers cause before they have proven who they are, paid by address."""

from tapgate.edge.call import Call
from tapgate.errors import ApiError, Code
from tapgate.service.addresses import counted_as
from tapgate.service.buckets import SECOND, Rate, Taken
from tapgate.service.throttle import Throttle

#: Failed logins of one address: one a second, and an office full of typing errors now and then.
LOGIN_RATE = Rate(1, 30)


def rate_limited(taken: Taken, message: str | None = None) -> ApiError:
    seconds = -(-taken.retry_in // SECOND)
    return ApiError(Code.RATE_LIMITED, message, headers={"Retry-After": str(seconds)})


class LookupCharge:
    """Charges the lookup of an unknown credential, and a failed authentication, to the address.

    Both together cost one token, so that credentials can neither be probed nor make the database
    work beyond the address's rate.
    """

    __slots__ = ("_call", "_is_charged")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._is_charged = False

    @property
    def _key(self) -> str:
        return f"ip:{counted_as(self._call.ip)}"

    async def charge(self) -> None:
        if self._is_charged:
            return
        self._call.taken = taken = await self._call.services.throttle.take(self._key)
        if not taken.allowed:
            raise rate_limited(taken)
        self._is_charged = True

    async def refund(self) -> None:
        await self._call.services.throttle.give_back(self._key)
        self._is_charged = False


class LoginCharge:
    """Charges password checks to the address that asks for them."""

    def __init__(self, throttle: Throttle, address: str) -> None:
        self._throttle = throttle
        self._key = f"login:{counted_as(address)}"

    async def charge(self) -> None:
        taken = await self._throttle.take(self._key, LOGIN_RATE)
        if not taken.allowed:
            raise rate_limited(taken, "Too many failed logins from this address")

    async def refund(self) -> None:
        await self._throttle.give_back(self._key, LOGIN_RATE)
