"""The request context passed to handlers."""

from collections.abc import Mapping

import msgspec

from tapgate.api.services import Services
from tapgate.auth.actors import Actor
from tapgate.auth.principals import Principal
from tapgate.http.token_buckets import RateLimitResult


class RequestContext(msgspec.Struct, kw_only=True):
    services: Services
    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    ip: str
    request_id: str
    body: bytes = b""
    caller: Principal | None = None
    #: Result of the latest rate limit check, or None before the first.
    rate_limit_result: RateLimitResult | None = None

    @property
    def principal(self) -> Principal:
        """The authenticated caller. Raises RuntimeError if there is none."""
        if self.caller is None:
            raise RuntimeError("a public endpoint has no principal")
        return self.caller

    @property
    def actor(self) -> Actor:
        return Actor.from_principal(self.caller, ip=self.ip, request_id=self.request_id)

    def get_header(self, name: bytes) -> str | None:
        """Return a header by its lowercase name, or None."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")
