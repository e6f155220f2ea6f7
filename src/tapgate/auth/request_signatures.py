"""Authenticates requests signed by processors, terminals, partners and internal services."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from tapgate.auth.hmac_keys import HmacKeys
from tapgate.auth.principals import Principal
from tapgate.auth.rate_limit_cost import NO_COST, RateLimitCost
from tapgate_client import signing
from tapgate_client.clock import Clock
from tapgate_client.errors import ApiError, Code

Headers = Mapping[bytes, bytes]

#: Used to verify signatures from unknown keys and services, so that timing does not reveal whether
#: they exist.
_DUMMY_SECRET = bytes(32)
_INVALID_SIGNATURE_MESSAGE = "The key is unknown or inactive, or the signature is invalid."


class _InternalService(msgspec.Struct, frozen=True):
    secret: bytes
    principal: Principal


class RequestSignatures:
    def __init__(
        self, hmac_keys: HmacKeys, service_secrets: Mapping[str, str], clock: Clock
    ) -> None:
        self._hmac_keys = hmac_keys
        self._clock = clock
        self._services = {
            name.encode(): _InternalService(
                secret.encode(), Principal(kind="service", id=name, name=name)
            )
            for name, secret in service_secrets.items()
        }

    async def require_known_key(self, headers: Headers, cost: RateLimitCost = NO_COST) -> Principal:
        """Return the principal for the key that a signed request names, before its body is read.

        Raises 401 if a header is missing, the timestamp is malformed or too far from the server's
        time, or the key is unknown. The signature is not verified yet.
        """
        key_id, _, _ = self._parse_signature_headers(headers)
        key = await self._hmac_keys.find(key_id, cost)
        if key is None:
            raise _build_unauthorized_error(_INVALID_SIGNATURE_MESSAGE)
        return key.principal

    def _parse_signature_headers(self, headers: Headers) -> tuple[bytes, str, str]:
        """Return the key id, timestamp, and signature.

        Raises 401 if one of them is missing, or if the timestamp is malformed or too far from the
        server's time.
        """
        try:
            key_id = headers[b"x-api-key-id"]
            timestamp = headers[b"x-timestamp"].decode("latin-1")
            signature = headers[b"x-signature"].decode("latin-1")
        except KeyError as missing:
            raise _build_missing_header_error(missing.args[0]) from None
        self._require_recent(signing.parse_rfc3339_utc(timestamp), "X-Timestamp")
        return key_id, timestamp, signature

    async def authenticate(
        self, method: str, path: str, headers: Headers, body: bytes, cost: RateLimitCost
    ) -> Principal:
        key_id, timestamp, signature = self._parse_signature_headers(headers)
        key = await self._hmac_keys.find(key_id, cost)
        signed = signing.signed_string(method, path, timestamp, body)
        genuine = signing.verify(key.secret if key else _DUMMY_SECRET, signature, signed)
        if key is None or not genuine:
            raise _build_unauthorized_error(_INVALID_SIGNATURE_MESSAGE)
        if headers.get(b"x-partner-id") != key.partner_header:
            raise _build_unauthorized_error("X-Partner-ID does not match the key.")
        if key.rejection_code is not None:
            raise ApiError(key.rejection_code)
        assert key.principal.key_id is not None
        self._hmac_keys.last_used.touch(key.principal.key_id)
        return key.principal

    def authenticate_service(
        self, method: str, path: str, query: bytes, headers: Headers
    ) -> Principal:
        try:
            name = headers[b"x-service-name"]
            timestamp = headers[b"x-service-timestamp"].decode("latin-1")
            signature = headers[b"x-service-signature"]
        except KeyError as missing:
            raise _build_missing_header_error(missing.args[0]) from None
        self._require_recent(signing.parse_unix_seconds(timestamp), "X-Service-Timestamp")
        service = self._services.get(name)
        signed = signing.service_signed_string(method, path, query, timestamp)
        genuine = signing.verify(
            service.secret if service else _DUMMY_SECRET, signature.decode("latin-1"), signed
        )
        if service is None or not genuine:
            raise _build_unauthorized_error("The service is unknown, or the signature is invalid.")
        return service.principal

    def _require_recent(self, moment: datetime | None, header: str) -> None:
        if moment is None:
            raise _build_unauthorized_error(f"{header} is malformed.")
        if not signing.is_timely(moment, self._clock()):
            raise _build_unauthorized_error(
                f"{header} is more than 5 minutes from the server's time."
            )


_HEADER_NAMES = {
    name.lower().encode(): name
    for name in (
        "X-API-Key-ID",
        "X-Timestamp",
        "X-Signature",
        "X-Service-Name",
        "X-Service-Timestamp",
        "X-Service-Signature",
    )
}


def _build_missing_header_error(header: bytes) -> ApiError:
    return _build_unauthorized_error(f"{_HEADER_NAMES[header]} is missing.")


def _build_unauthorized_error(message: str) -> ApiError:
    return ApiError(Code.UNAUTHORIZED, message)
