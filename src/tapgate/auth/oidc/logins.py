"""Sign-ins with the identity provider: authorization code with PKCE, state and nonce.

The client keeps a sealed token with the state, the nonce and the PKCE verifier, so a sign-in can
only be completed where it was started. The state works once: its hash is stored when the code is
exchanged. The verified identity is stored with it until a session starts, because the admin may
first have to enter a code or a password.
"""

import base64
import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import Final

import msgspec
import structlog

from tapgate.auth.oidc.id_tokens import Identity, InvalidIdTokenError, verify_id_token
from tapgate.auth.oidc.provider import Provider, add_query
from tapgate.auth.oidc.requests import ProviderError, RequestRejectedError
from tapgate.core.settings.security import OidcSettings
from tapgate.core.vault import Vault, VaultError
from tapgate.runtime.client_addresses import get_address_key
from tapgate.runtime.fair_limit import FairLimit
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import Clock
from tapgate_client.errors import ApiError, Code

CALLBACK_PATH: Final = "/console/sso/callback"
SIGN_IN_PATH: Final = "/console/sign-in"
LOGIN_LIFETIME: Final = timedelta(minutes=10)

_RANDOM_BYTES: Final = 32
_TOKEN_CONTEXT: Final = b"oidc login"
_IDENTITY_CONTEXT: Final = b"oidc identity "
#: The provider asks for the credentials again, and confirms it in `auth_time`.
_REAUTHENTICATION: Final = {"prompt": "login", "max_age": "0"}
_log = structlog.get_logger()


class _Login(msgspec.Struct, frozen=True):
    """A sign-in that has been started."""

    state: str
    nonce: str
    verifier: str
    expires_at: datetime
    #: Session that the admin verifies by signing in again; None for a sign-in.
    session_id: int | None = None

    def __repr__(self) -> str:
        return "_Login(...)"


class OidcLogins:
    def __init__(
        self,
        settings: OidcSettings,
        public_url: str,
        *,
        database: Database,
        vault: Vault,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._public_url = public_url
        self._redirect_uri = public_url + CALLBACK_PATH
        self._database = database
        self._vault = vault
        self.clock = clock
        self._provider = Provider(settings, clock)
        self._limit = FairLimit(
            "Too many sign-ins are in progress. Try again shortly.",
            slots=8,
            slots_per_group=2,
            queue=32,
            queue_per_group=4,
            timeout=10.0,
        )

    async def start(self, session_id: int | None = None) -> tuple[str, str]:
        """Return the provider's sign-in page URL, and the token that completes the login.

        To verify a session's admin, the provider must ask for the credentials again.
        """
        try:
            metadata = await self._provider.get_metadata()
        except ProviderError as error:
            raise _build_unavailable_error(error) from None
        login = _Login(
            state=secrets.token_urlsafe(_RANDOM_BYTES),
            nonce=secrets.token_urlsafe(_RANDOM_BYTES),
            verifier=secrets.token_urlsafe(_RANDOM_BYTES),
            expires_at=self.clock() + LOGIN_LIFETIME,
            session_id=session_id,
        )
        parameters = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": self._settings.scopes,
            "state": login.state,
            "nonce": login.nonce,
            "code_challenge": _compute_challenge(login.verifier),
            "code_challenge_method": "S256",
            **({} if session_id is None else _REAUTHENTICATION),
        }
        sealed = self._vault.seal(msgspec.json.encode(login), _TOKEN_CONTEXT)
        url = add_query(metadata.authorization_endpoint, parameters)
        return url, base64.urlsafe_b64encode(sealed).decode()

    async def identify(
        self,
        login_token: str,
        *,
        state: str,
        code: str,
        issuer: str | None,
        address: str,
        session_id: int | None = None,
    ) -> Identity:
        """Return the identity behind an authorization code.

        The code is exchanged once. Later calls with the same state return the same identity until
        `finish` is called or the login expires. `session_id` is the one that `start` got.
        """
        login = self._open(login_token)
        if login is None or login.session_id != session_id:
            raise _build_expired_error()
        if not hmac.compare_digest(login.state.encode(), state.encode()):
            raise _build_expired_error()
        state_hash = self._hash_state(state)
        if not await self._claim_state(state_hash, login.expires_at):
            return await self._load_identity(state_hash)
        async with self._limit.slot(get_address_key(address)):
            identity = await self._exchange(login, code, issuer)
        sealed = self._vault.seal(msgspec.json.encode(identity), build_identity_context(state_hash))
        await self._database.execute(
            "UPDATE oidc_logins SET sealed_identity = $2 WHERE state_hash = $1", state_hash, sealed
        )
        return identity

    async def finish(self, tx: Transaction, state: str) -> None:
        """Forget the identity, so that the login starts one session; raise 401 if it already has.

        Among concurrent calls, in any number of processes, one succeeds.
        """
        is_open = await tx.fetchval(
            """UPDATE oidc_logins SET sealed_identity = NULL
               WHERE state_hash = $1 AND sealed_identity IS NOT NULL RETURNING true""",
            self._hash_state(state),
        )
        if not is_open:
            raise _build_expired_error()

    async def get_logout_url(self, id_token: str | None) -> str | None:
        """Return the URL that ends the session at the provider, or None if it has none.

        With the session's ID token, most providers end the session without asking, and redirect to
        the sign-in page.
        """
        try:
            endpoint = (await self._provider.get_metadata()).end_session_endpoint
        except ProviderError:
            return None
        if endpoint is None:
            return None
        parameters = {
            "client_id": self._settings.client_id,
            "post_logout_redirect_uri": self._public_url + SIGN_IN_PATH,
            **({} if id_token is None else {"id_token_hint": id_token}),
        }
        return add_query(endpoint, parameters)

    async def _exchange(self, login: _Login, code: str, issuer: str | None) -> Identity:
        provider = self._provider
        try:
            if issuer is not None and issuer != (await provider.get_metadata()).issuer:
                raise InvalidIdTokenError("iss")
            response = await provider.exchange_code(code, login.verifier, self._redirect_uri)
            return await verify_id_token(
                response,
                provider=provider,
                settings=self._settings,
                nonce=login.nonce,
                now=self.clock(),
                authenticated_after=None
                if login.session_id is None
                else login.expires_at - LOGIN_LIFETIME,
            )
        except InvalidIdTokenError as error:
            _log.warning("oidc.token_rejected", reason=error.reason)
            raise
        except RequestRejectedError as error:
            _log.warning("oidc.code_rejected", reason=str(error))
            raise ApiError(
                Code.UNAUTHORIZED, "The identity provider rejected the sign-in. Start again."
            ) from None
        except ProviderError as error:
            raise _build_unavailable_error(error) from None

    async def _claim_state(self, state_hash: bytes, expires_at: datetime) -> bool:
        """Return whether the state is used for the first time."""
        return bool(
            await self._database.fetchval(
                """INSERT INTO oidc_logins (state_hash, expires_at) VALUES ($1, $2)
                   ON CONFLICT DO NOTHING RETURNING true""",
                state_hash,
                expires_at,
            )
        )

    async def _load_identity(self, state_hash: bytes) -> Identity:
        sealed = await self._database.fetchval(
            "SELECT sealed_identity FROM oidc_logins WHERE state_hash = $1", state_hash
        )
        if sealed is None:
            raise _build_expired_error()
        return msgspec.json.decode(
            self._vault.open(sealed, build_identity_context(state_hash)), type=Identity
        )

    def _open(self, login_token: str) -> _Login | None:
        try:
            sealed = base64.urlsafe_b64decode(login_token.encode())
            login = msgspec.json.decode(self._vault.open(sealed, _TOKEN_CONTEXT), type=_Login)
        except (ValueError, VaultError):
            return None
        return login if login.expires_at > self.clock() else None

    def _hash_state(self, state: str) -> bytes:
        return self._vault.keyed_hash("oidc_state", state.encode())


def _compute_challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _build_expired_error() -> ApiError:
    return ApiError(
        Code.UNAUTHORIZED,
        "The sign-in has expired, was already used or was started in another browser. Start again.",
    )


def _build_unavailable_error(error: ProviderError) -> ApiError:
    _log.warning("oidc.provider_unavailable", reason=str(error))
    return ApiError(
        Code.SERVICE_UNAVAILABLE,
        "The identity provider is not available. Try again later, or sign in with a password.",
        headers={"Retry-After": "5"},
    )


def build_identity_context(state_hash: bytes) -> bytes:
    """Return the vault context that binds a sealed identity to its login."""
    return _IDENTITY_CONTEXT + state_hash
