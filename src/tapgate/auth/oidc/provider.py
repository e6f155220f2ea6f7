"""Identity provider: endpoints, keys, and authorization code exchange."""

import base64
from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from tapgate.auth.oidc.cached_document import CachedDocument
from tapgate.auth.oidc.requests import ProviderError, fetch_json
from tapgate.core.settings.security import OidcSettings
from tapgate_client.clock import Clock

_DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
_MAX_KEYS: Final = 100
_MIN_RSA_BITS: Final = 2048
_MAX_RSA_BITS: Final = 8192  # verification with larger keys would block the event loop
#: Accepted algorithms, and what their keys must have.
KEY_PARAMETERS: Final[Mapping[str, Mapping[str, str]]] = {
    "RS256": {"kty": "RSA"},
    "PS256": {"kty": "RSA"},
    "ES256": {"kty": "EC", "crv": "P-256"},
    "EdDSA": {"kty": "OKP", "crv": "Ed25519"},
}
_PUBLIC_PARAMETERS: Final[tuple[str, ...]] = ("kty", "n", "e", "crv", "x", "y")
_JsonObject = dict[str, Any]


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """Discovery document fields."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None


class _KeySet(msgspec.Struct, frozen=True):
    keys: Annotated[list[_JsonObject], msgspec.Meta(max_length=_MAX_KEYS)]


class TokenResponse(msgspec.Struct, frozen=True):
    id_token: str
    access_token: str | None = None

    def __repr__(self) -> str:
        return "TokenResponse(...)"


class Provider:
    """The provider that the settings name. Nothing is downloaded before the first sign-in."""

    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self._settings = settings
        self._metadata = CachedDocument(self._load_metadata, clock)
        self._key_set = CachedDocument(self._load_key_set, clock)

    async def get_metadata(self) -> Metadata:
        return await self._metadata.get()

    async def find_key(self, algorithm: str, key_id: str | None) -> jwt.PyJWK | None:
        """Return the key for an ID token, or None. An unknown key is looked up at the provider."""
        key = _select_key((await self._key_set.get()).keys, algorithm, key_id)
        if key is None:
            key = _select_key((await self._key_set.refresh()).keys, algorithm, key_id)
        return key

    async def exchange_code(self, code: str, verifier: str, redirect_uri: str) -> TokenResponse:
        metadata, settings = await self.get_metadata(), self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = {}
        methods = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
        if settings.client_secret is None:
            form["client_id"] = settings.client_id
        elif "client_secret_basic" in methods:
            headers["Authorization"] = _build_basic(settings.client_id, settings.client_secret)
        else:
            form |= {"client_id": settings.client_id, "client_secret": settings.client_secret}
        return await fetch_json(
            "POST", metadata.token_endpoint, TokenResponse, form=form, headers=headers
        )

    async def _load_metadata(self) -> Metadata:
        metadata = await fetch_json("GET", self._settings.issuer + _DISCOVERY_PATH, Metadata)
        if metadata.issuer.rstrip("/") != self._settings.issuer:
            raise ProviderError("another issuer")
        for url in (
            metadata.authorization_endpoint,
            metadata.token_endpoint,
            metadata.jwks_uri,
            metadata.end_session_endpoint,
        ):
            if url is not None:
                self.require_valid_endpoint(url)
        return metadata

    def require_valid_endpoint(self, url: str) -> None:
        """Reject URLs that are malformed, or without HTTPS although the issuer has it."""
        try:
            parts = urlsplit(url)
        except ValueError:
            raise ProviderError("invalid endpoint") from None
        schemes = ("https",) if self._settings.issuer.startswith("https:") else ("http", "https")
        is_clean = url.isascii() and url.isprintable() and " " not in url and not parts.fragment
        if parts.scheme not in schemes or not parts.hostname or not is_clean:
            raise ProviderError("invalid endpoint")

    async def _load_key_set(self) -> _KeySet:
        return await fetch_json("GET", (await self.get_metadata()).jwks_uri, _KeySet)


def add_query(url: str, parameters: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"


def _build_basic(client_id: str, client_secret: str) -> str:
    credentials = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
    return "Basic " + base64.b64encode(credentials.encode()).decode()


def _select_key(keys: list[_JsonObject], algorithm: str, key_id: str | None) -> jwt.PyJWK | None:
    """Return the key with this ID; without an ID, the only key for the algorithm."""
    candidates = [
        key
        for key in keys
        if key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and all(key.get(name) == value for name, value in KEY_PARAMETERS[algorithm].items())
        and (key_id is None or key.get("kid") == key_id)
    ]
    return _load_key(candidates[0], algorithm) if len(candidates) == 1 else None


def _load_key(key: _JsonObject, algorithm: str) -> jwt.PyJWK | None:
    public = {name: key[name] for name in _PUBLIC_PARAMETERS if name in key}
    try:
        loaded = jwt.PyJWK(public, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
        return None
    if isinstance(loaded.key, RSAPublicKey) and not (
        _MIN_RSA_BITS <= loaded.key.key_size <= _MAX_RSA_BITS
    ):
        return None
    return loaded
