"""Verifies ID tokens (OpenID Connect Core, section 3.1.3.7)."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import jwt
import msgspec

from tapgate.auth.oidc.provider import KEY_PARAMETERS, Provider, TokenResponse
from tapgate.core.settings.security import OidcSettings
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.common import Redacted
from tapgate_client.schemas.fields import TEXT_RULE, EmailRule, InvalidValueError

_MAX_TOKEN_LENGTH: Final = 64 * 1024
_MAX_SUBJECT_LENGTH: Final = 255
#: For a token in the logout URL. Many servers reject URLs longer than 8 KiB.
_MAX_HINT_LENGTH: Final = 6000
_LEEWAY_SECONDS: Final = 60
_EMAIL_RULE: Final = EmailRule(allow_single_label=True)
_SIGNATURE_ONLY: Final = {
    f"verify_{claim}": False for claim in ("exp", "iat", "nbf", "aud", "iss", "sub", "jti")
}


class InvalidIdTokenError(ApiError):
    """The ID token is invalid. `reason` names the claim or part."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            Code.UNAUTHORIZED, f"The identity provider sent an invalid ID token ({reason})."
        )
        self.reason = reason


class Identity(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """Who signed in, according to the provider."""

    issuer: str
    subject: str
    email: str
    name: str
    #: None if the role claim has no value in the role map.
    role: str | None
    #: The ID token, with which the session ends at the provider; None if it is long.
    id_token: str | None = None


class _Claims(msgspec.Struct, frozen=True, kw_only=True):
    iss: str
    sub: str
    aud: str | list[str]
    exp: int | float
    iat: int | float
    nbf: int | float = 0
    nonce: str | None = None
    auth_time: int | float | None = None
    azp: str | None = None
    at_hash: str | None = None
    email: str | None = None
    #: Some providers send a string.
    email_verified: bool | str | None = None
    name: str | None = None


async def verify_id_token(
    response: TokenResponse,
    *,
    provider: Provider,
    settings: OidcSettings,
    nonce: str,
    now: datetime,
    authenticated_after: datetime | None = None,
) -> Identity:
    """Return the identity that a token response proves; raise 401 if a check fails.

    With `authenticated_after`, the person must have entered the credentials since.
    """
    algorithm, payload = await _verify_signature(response.id_token, provider)
    try:
        claims = msgspec.convert(payload, _Claims)
    except msgspec.ValidationError:
        raise InvalidIdTokenError("missing or malformed claim") from None
    issuer = (await provider.get_metadata()).issuer
    _check_audience(claims, issuer, settings.client_id)
    _check_times(claims, now.timestamp())
    if claims.nonce is None or not _is_equal(claims.nonce, nonce):
        raise InvalidIdTokenError("nonce")
    if authenticated_after is not None:
        _check_authentication(claims, authenticated_after.timestamp())
    if claims.at_hash is not None:
        expected = _hash_access_token(response.access_token or "", algorithm)
        if not _is_equal(claims.at_hash, expected):
            raise InvalidIdTokenError("at_hash")
    email = _get_email(claims)
    return Identity(
        issuer=issuer,
        subject=claims.sub,
        email=email,
        name=_get_name(claims, email),
        role=find_role(payload, settings),
        id_token=response.id_token if len(response.id_token) <= _MAX_HINT_LENGTH else None,
    )


def find_role(claims: Mapping[str, Any], settings: OidcSettings) -> str | None:
    """Return the role for the first role map entry that the role claim contains."""
    value = _find_claim(claims, settings.role_claim)
    values = value if isinstance(value, list) else [value]
    return next((role for key, role in settings.role_map.items() if key in values), None)


def _find_claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, or by its path if the name contains dots."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


async def _verify_signature(token: str, provider: Provider) -> tuple[str, dict[str, Any]]:
    """Return the algorithm and claims for a token that the provider has signed."""
    if len(token) > _MAX_TOKEN_LENGTH:
        raise InvalidIdTokenError("length")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        raise InvalidIdTokenError("format") from None
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in KEY_PARAMETERS:
        raise InvalidIdTokenError("alg")
    key = await provider.find_key(algorithm, header.get("kid"))
    if key is None:
        raise InvalidIdTokenError("kid")
    try:
        # Times are checked against the platform's clock, not the library's.
        claims = jwt.decode(token, key, algorithms=[algorithm], options=_SIGNATURE_ONLY)  # type: ignore[arg-type]
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        raise InvalidIdTokenError("signature") from None
    return algorithm, claims


def _check_audience(claims: _Claims, issuer: str, client_id: str) -> None:
    if claims.iss != issuer:
        raise InvalidIdTokenError("iss")
    audience = [claims.aud] if isinstance(claims.aud, str) else claims.aud
    if client_id not in audience:
        raise InvalidIdTokenError("aud")
    if (len(audience) > 1 or claims.azp is not None) and claims.azp != client_id:
        raise InvalidIdTokenError("azp")
    is_text = claims.sub.isascii() and claims.sub.isprintable()
    if not is_text or not 0 < len(claims.sub) <= _MAX_SUBJECT_LENGTH:
        raise InvalidIdTokenError("sub")


def _check_times(claims: _Claims, now: float) -> None:
    # Written so that NaN, which Python's JSON parser accepts, fails.
    if not claims.exp > now - _LEEWAY_SECONDS:
        raise InvalidIdTokenError("exp")
    if not claims.iat <= now + _LEEWAY_SECONDS:
        raise InvalidIdTokenError("iat")
    if not claims.nbf <= now + _LEEWAY_SECONDS:
        raise InvalidIdTokenError("nbf")


def _check_authentication(claims: _Claims, after: float) -> None:
    if claims.auth_time is None:
        raise ApiError(
            Code.FORBIDDEN,
            "Your identity provider does not confirm that you signed in again. Sign out, sign in, "
            "and enroll a second factor in your account within 15 minutes.",
            details={"required": ["second_factor"]},
        )
    if not claims.auth_time >= after - _LEEWAY_SECONDS:
        raise InvalidIdTokenError("auth_time")


def _hash_access_token(access_token: str, algorithm: str) -> str:
    """Return the left half of the hash that belongs to the signature algorithm."""
    new_hash = hashlib.sha512 if algorithm == "EdDSA" else hashlib.sha256
    digest = new_hash(access_token.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).decode().rstrip("=")


def _get_email(claims: _Claims) -> str:
    if claims.email is None:
        raise ApiError(Code.FORBIDDEN, "The identity provider sent no email address.")
    if claims.email_verified not in (None, True, "true"):
        raise ApiError(Code.FORBIDDEN, "Your email address is not verified.")
    try:
        return _EMAIL_RULE.check(claims.email)
    except InvalidValueError:
        raise InvalidIdTokenError("email") from None


def _get_name(claims: _Claims, email: str) -> str:
    name = claims.name or ""
    try:
        # Only printable text can be stored: JSON strings may contain unpaired surrogates.
        return TEXT_RULE.check(name if name.isprintable() else "")
    except InvalidValueError:
        return email.partition("@")[0]


def _is_equal(first: str, second: str) -> bool:
    return hmac.compare_digest(first.encode(errors="replace"), second.encode())
