"""Who calls: small values, one kind for each way the gateway knows its callers.

What is secret in them is not shown. A request is signed anew for every try, with the code that the
gateway checks it with.
"""

from typing import Protocol

import msgspec

from tapgate import clock, signing
from tapgate.clock import Clock


class Unsigned(msgspec.Struct, frozen=True):
    """A request as it is about to be sent: the path and the query still encoded."""

    method: str
    path: str
    query: bytes
    body: bytes

    def __repr__(self) -> str:
        return f"Unsigned({self.method})"


class Credential(Protocol):
    def headers(self, request: Unsigned, now: Clock) -> dict[str, str]: ...


class _Hidden(msgspec.Struct, frozen=True):
    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class _Bearer(_Hidden, frozen=True):
    def headers(self, request: Unsigned, now: Clock) -> dict[str, str]:
        del request, now
        return {"Authorization": f"Bearer {self._shown()}"}

    def _shown(self) -> str:
        raise NotImplementedError


class ApiKey(_Bearer, frozen=True):
    """A third party's key, `svc_live_...` or `svc_test_...`."""

    key: str

    def _shown(self) -> str:
        return self.key


class AccessToken(_Bearer, frozen=True):
    """An admin's token from `admin.login`. When it ends, so does what may be done with it: `Login`
    gets a new one by itself."""

    token: str

    def _shown(self) -> str:
        return self.token


class Login(_Hidden, frozen=True):
    """An admin, logged in when it is first needed and again when that ends."""

    email: str
    password: str


class PosKey(_Hidden, frozen=True):
    """The signing key of a processor or of one of its terminals."""

    api_key_id: str
    secret: str

    def headers(self, request: Unsigned, now: Clock) -> dict[str, str]:
        return _signed(self.api_key_id, self.secret, request, now)


class PartnerKey(_Hidden, frozen=True):
    """The signing key of a funding partner."""

    api_key_id: str
    partner_id: str
    secret: str

    def headers(self, request: Unsigned, now: Clock) -> dict[str, str]:
        headers = _signed(self.api_key_id, self.secret, request, now)
        return headers | {"X-Partner-ID": self.partner_id}


class ServiceSecret(_Hidden, frozen=True):
    """An internal service."""

    name: str
    secret: str

    def headers(self, request: Unsigned, now: Clock) -> dict[str, str]:
        timestamp = str(int(now().timestamp()))
        return {
            "X-Service-Name": self.name,
            "X-Service-Timestamp": timestamp,
            "X-Service-Signature": signing.sign_service(
                self.secret.encode(), request.method, request.path, request.query, timestamp
            ),
        }


def _signed(key_id: str, secret: str, request: Unsigned, now: Clock) -> dict[str, str]:
    timestamp = clock.format_rfc3339(now())
    return {
        "X-API-Key-ID": key_id,
        "X-Timestamp": timestamp,
        "X-Signature": signing.sign(
            secret.encode(), request.method, request.path, timestamp, request.body
        ),
    }
