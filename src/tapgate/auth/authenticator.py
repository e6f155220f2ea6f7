"""Request authentication. The request headers determine the kind of credential.

If a request carries several credentials, a bearer token takes precedence over HMAC headers, and
HMAC headers over service headers. Generated clients send every header that an operation documents,
with the token or nothing in other credentials' headers. Only the preferred credential counts: its
rights are never combined with another's, and if it is invalid, no other one is tried.
"""

from typing import Final

from tapgate.auth import api_keys
from tapgate.auth.access_tokens import AccessTokens
from tapgate.auth.api_keys import ApiKeys
from tapgate.auth.hmac_keys import HmacKeys
from tapgate.auth.invitations import Invitations
from tapgate.auth.logins import Logins
from tapgate.auth.oidc.logins import OidcLogins
from tapgate.auth.passkeys import Passkeys
from tapgate.auth.passwords import Passwords
from tapgate.auth.principals import Principal
from tapgate.auth.rate_limit_cost import NO_COST, RateLimitCost
from tapgate.auth.request_signatures import Headers, RequestSignatures
from tapgate.auth.second_factors import Factors
from tapgate.auth.sessions import Sessions
from tapgate.auth.terminals import Terminals
from tapgate.auth.webhook_secrets import WebhookSecrets
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.runtime.client_addresses import is_within
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.signals import Signals
from tapgate_client.clock import Clock
from tapgate_client.errors import ApiError, Code

_BEARER_SCHEME: Final = "bearer"
#: Headers that select a credential. Empty ones count as absent.
_HMAC_HEADERS: Final = (b"x-api-key-id", b"x-signature")
_SERVICE_HEADERS: Final = (b"x-service-name", b"x-service-signature")


class Authenticator:
    """Authenticates requests. Each process caches credentials; signals invalidate the caches."""

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
        self.api_keys = ApiKeys(database, signals, vault, clock, production=settings.is_production)
        self.hmac_keys = HmacKeys(database, signals, vault, clock)
        self.signatures = RequestSignatures(self.hmac_keys, settings.service_secrets, clock)
        self.terminals = Terminals(database, signals, clock)
        self.webhook_secrets = WebhookSecrets(vault)
        self.factors = Factors(database, vault, clock, mode=settings.second_factor)
        self.sessions = Sessions(
            database,
            signals,
            vault,
            clock,
            new_id,
            access_tokens=AccessTokens(settings.jwt_secret),
            factors=self.factors,
            idle_minutes=settings.session_idle_minutes,
        )
        self.invitations = Invitations(database, vault, settings.public_url)
        self.passwords = Passwords()
        self.passkeys = Passkeys(database, vault, clock, public_url=settings.public_url)
        self.logins = Logins(database, self.passwords, clock, vault, self.factors, self.passkeys)
        #: None without single sign-on.
        self.oidc: OidcLogins | None = None
        if settings.oidc is not None:
            self.oidc = OidcLogins(
                settings.oidc, settings.public_url, database=database, vault=vault, clock=clock
            )

    async def authenticate(
        self,
        method: str,
        path: str,
        query: bytes,
        headers: Headers,
        body: bytes,
        cost: RateLimitCost = NO_COST,
    ) -> Principal | None:
        """Return the principal, or None without a credential; raise if the credential is invalid.

        `path` is percent-encoded, as in the request, and excludes the query. Header names are
        lowercase. `cost` is taken before the database lookup for a credential that this process has
        not found before, and kept only if the lookup does not find the credential.
        """
        if self.has_body_signature(headers):
            return await self.signatures.authenticate(method, path, headers, body, cost)
        if not has_bearer(headers) and _has_any(headers, _SERVICE_HEADERS):
            return self.signatures.authenticate_service(method, path, query, headers)
        authorization = headers.get(b"authorization")
        return (
            None if authorization is None else await self._authenticate_bearer(authorization, cost)
        )

    @staticmethod
    def has_body_signature(headers: Headers) -> bool:
        """Return whether the request is authenticated by a signature that covers its body."""
        return not has_bearer(headers) and _has_any(headers, _HMAC_HEADERS)

    def authorize_api_key(self, principal: Principal, address: str) -> None:
        """Raise 403 if the API key is not allowed from the address; otherwise record its use."""
        if principal.allowed_ips and not is_within(address, principal.allowed_ips):
            raise ApiError(
                Code.FORBIDDEN,
                "This API key cannot be used from this IP address.",
                details={"required": ["allowed_ips"]},
            )
        if principal.key_id is not None:
            self.api_keys.last_used.touch(principal.key_id)

    async def _authenticate_bearer(self, authorization: bytes, cost: RateLimitCost) -> Principal:
        scheme, _, credential = authorization.decode("latin-1").partition(" ")
        credential = credential.strip()
        if scheme.lower() != _BEARER_SCHEME or not credential:
            raise ApiError(
                Code.UNAUTHORIZED,
                "Authorization must be a Bearer token: an API key or an access token.",
            )
        if credential.startswith(api_keys.API_KEY_PREFIX):
            return await self.api_keys.authenticate(credential, cost)
        return await self.sessions.authenticate(credential, cost)


def has_bearer(headers: Headers) -> bool:
    """Return whether the request has a bearer token, which takes precedence."""
    scheme, _, credential = headers.get(b"authorization", b"").partition(b" ")
    return scheme.lower() == _BEARER_SCHEME.encode() and bool(credential.strip())


def _has_any(headers: Headers, names: tuple[bytes, ...]) -> bool:
    return any(headers.get(name) for name in names)
