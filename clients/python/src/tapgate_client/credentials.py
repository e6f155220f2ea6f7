"""Credentials: one immutable type for each gateway authentication method.

Their `repr` hides secrets. Signing credentials sign every attempt separately, with the same code
that the gateway uses to verify signatures.
"""

from typing import Protocol

import msgspec

from tapgate_client import clock, signing
from tapgate_client.clock import Clock
from tapgate_client.schemas.common import Redacted


class UnsignedRequest(Redacted, msgspec.Struct, frozen=True):
    """Request before it is signed, with path and query still percent-encoded."""

    method: str
    path: str
    query: bytes
    body: bytes


class Credential(Protocol):
    def build_headers(self, request: UnsignedRequest, now: Clock) -> dict[str, str]: ...


class ApiKey(Redacted, msgspec.Struct, frozen=True):
    """Integrator API key: `svc_live_...` or `svc_test_...`."""

    key: str

    def build_headers(self, request: UnsignedRequest, now: Clock) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


class AccessToken(Redacted, msgspec.Struct, frozen=True):
    """Admin access token, as returned by `admin.log_in`.

    It is not renewed when it expires. Use `Login` for automatic renewal.
    """

    token: str

    def build_headers(self, request: UnsignedRequest, now: Clock) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


class Login(Redacted, msgspec.Struct, frozen=True):
    """Admin email and password.

    The client logs in before the first request that needs a token, and renews expiring tokens.
    """

    email: str
    password: str


class PosKey(Redacted, msgspec.Struct, frozen=True):
    """Processor or terminal signing key."""

    api_key_id: str
    secret: str

    def build_headers(self, request: UnsignedRequest, now: Clock) -> dict[str, str]:
        return _build_signed_headers(self.api_key_id, self.secret, request, now)


class PartnerKey(Redacted, msgspec.Struct, frozen=True):
    """Funding partner signing key."""

    api_key_id: str
    partner_id: str
    secret: str

    def build_headers(self, request: UnsignedRequest, now: Clock) -> dict[str, str]:
        headers = _build_signed_headers(self.api_key_id, self.secret, request, now)
        return headers | {"X-Partner-ID": self.partner_id}


class ServiceSecret(Redacted, msgspec.Struct, frozen=True):
    """Internal service's shared secret."""

    name: str
    secret: str

    def build_headers(self, request: UnsignedRequest, now: Clock) -> dict[str, str]:
        timestamp = str(int(now().timestamp()))
        return {
            "X-Service-Name": self.name,
            "X-Service-Timestamp": timestamp,
            "X-Service-Signature": signing.sign_service(
                self.secret.encode(), request.method, request.path, request.query, timestamp
            ),
        }


def _build_signed_headers(
    key_id: str, secret: str, request: UnsignedRequest, now: Clock
) -> dict[str, str]:
    timestamp = clock.format_rfc3339(now())
    return {
        "X-API-Key-ID": key_id,
        "X-Timestamp": timestamp,
        "X-Signature": signing.sign(
            secret.encode(), request.method, request.path, timestamp, request.body
        ),
    }
