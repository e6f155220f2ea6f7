"""Request authentication: selects one of five kinds of credential by the request headers.

If a request carries several credentials, HMAC headers take precedence, then service headers, then
Authorization: a proof of possession is preferred to a secret sent over the network.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from tapgate import signing
from tapgate.clock import Clock
from tapgate.credentials import api_keys
from tapgate.credentials.access_tokens import AccessTokens
from tapgate.credentials.api_keys import ApiKeys
from tapgate.credentials.charges import NO_CHARGE, Charge
from tapgate.credentials.hmac_keys import HmacKeys
from tapgate.credentials.logins import Logins
from tapgate.credentials.passwords import Passwords
from tapgate.credentials.principals import Principal
from tapgate.credentials.sessions import Sessions
from tapgate.credentials.terminals import Terminals
from tapgate.credentials.webhook_secrets import WebhookSecrets
from tapgate.errors import ApiError, Code
from tapgate.ids import IdGenerator
from tapgate.service.client_addresses import is_within
from tapgate.settings import Settings
from tapgate.store.database import Database
from tapgate.store.signals import Signals
from tapgate.vault import Vault

Headers = Mapping[bytes, bytes]

#: Used to verify signatures of unknown keys, so timing does not reveal whether a key exists.
_DUMMY_SECRET = bytes(32)
_INVALID_SIGNATURE_MESSAGE = "The key is unknown or inactive, or the signature is invalid."


class _InternalService(msgspec.Struct, frozen=True):
    secret: bytes
    principal: Principal


class Authenticator:
    """Authenticates requests. Credentials are cached in the process and invalidated by signals."""

    def __init__(
        self,
        *,
        settings: Settings,
        database: Database,
        signals: Signals,
        vault: Vault,
        clock: Clock,
        new_id: IdGenerator,
    ) -> None:
        self._clock = clock
        self._services = {
            name.encode(): _InternalService(
                secret.encode(), Principal(kind="service", id=name, name=name)
            )
            for name, secret in settings.service_secrets.items()
        }
        self.api_keys = ApiKeys(
            database, signals, vault, clock, new_id, production=settings.is_production
        )
        self.hmac_keys = HmacKeys(database, signals, vault, clock, new_id)
        self.terminals = Terminals(database, signals, clock)
        self.webhook_secrets = WebhookSecrets(vault)
        self.sessions = Sessions(
            database, signals, vault, clock, new_id, access_tokens=AccessTokens(settings.jwt_secret)
        )
        self.passwords = Passwords()
        self.logins = Logins(database, self.passwords, clock, vault)

    async def authenticate(
        self,
        method: str,
        path: str,
        query: bytes,
        headers: Headers,
        body: bytes,
        charge: Charge = NO_CHARGE,
    ) -> Principal | None:
        """Return the principal, or None if the request has no credential; raise if it is invalid.

        The path is as requested, still percent-encoded and without the query. Header names are
        lowercase. `charge` pays for the database lookup of a credential that is not cached in this
        process.
        """
        if self.has_body_signature(headers):
            return await self._authenticate_signature(method, path, headers, body, charge)
        if b"x-service-name" in headers or b"x-service-signature" in headers:
            return self._authenticate_service(method, path, query, headers)
        authorization = headers.get(b"authorization")
        return (
            None
            if authorization is None
            else await self._authenticate_bearer(authorization, charge)
        )

    def authorize_api_key(self, principal: Principal, address: str) -> None:
        """Reject an address that the API key does not allow, and record the use of the key."""
        if principal.allowed_ips and not is_within(address, principal.allowed_ips):
            raise ApiError(
                Code.FORBIDDEN,
                "This API key cannot be used from this IP address.",
                details={"required": ["allowed_ips"]},
            )
        if principal.key_id is not None:
            self.api_keys.last_used.touch(principal.key_id)

    @staticmethod
    def has_body_signature(headers: Headers) -> bool:
        """Return whether the credential is a signature over the body."""
        return b"x-api-key-id" in headers or b"x-signature" in headers

    async def require_known_key(self, headers: Headers, charge: Charge = NO_CHARGE) -> Principal:
        """Reject a signed request with an unknown key or stale timestamp before reading its body.

        Return the key's owner. The caller is not yet authenticated as that owner.
        """
        key_id, _, _ = self._parse_signature_headers(headers)
        key = await self.hmac_keys.find(key_id, charge)
        if key is None:
            raise _build_unauthorized_error(_INVALID_SIGNATURE_MESSAGE)
        return key.principal

    def _parse_signature_headers(self, headers: Headers) -> tuple[bytes, str, str]:
        """Return the key id, timestamp, and signature of a signed request."""
        try:
            key_id = headers[b"x-api-key-id"]
            timestamp = headers[b"x-timestamp"].decode("latin-1")
            signature = headers[b"x-signature"].decode("latin-1")
        except KeyError as missing:
            raise _build_missing_header_error(missing.args[0]) from None
        self._require_recent(signing.parse_rfc3339_utc(timestamp), "X-Timestamp")
        return key_id, timestamp, signature

    async def _authenticate_signature(
        self, method: str, path: str, headers: Headers, body: bytes, charge: Charge
    ) -> Principal:
        key_id, timestamp, signature = self._parse_signature_headers(headers)
        key = await self.hmac_keys.find(key_id, charge)
        signed = signing.signed_string(method, path, timestamp, body)
        genuine = signing.verify(key.secret if key else _DUMMY_SECRET, signature, signed)
        if key is None or not genuine:
            raise _build_unauthorized_error(_INVALID_SIGNATURE_MESSAGE)
        if headers.get(b"x-partner-id") != key.partner_header:
            raise _build_unauthorized_error("X-Partner-ID does not match the key.")
        if key.rejection_code is not None:
            raise ApiError(key.rejection_code)
        return key.principal

    def _authenticate_service(
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

    async def _authenticate_bearer(self, authorization: bytes, charge: Charge) -> Principal:
        scheme, _, credential = authorization.decode("latin-1").partition(" ")
        credential = credential.strip()
        if scheme.lower() != "bearer" or not credential:
            raise _build_unauthorized_error(
                "Authorization must be a Bearer token: an API key or an access token."
            )
        if credential.startswith(api_keys.API_KEY_PREFIX):
            return await self.api_keys.authenticate(credential, charge)
        return await self.sessions.authenticate(credential, charge)

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
