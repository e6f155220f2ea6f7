"""Admin access tokens: JWTs signed with HS256 only.

The payload holds the five claims documented in the API. The session id is in the token header,
which the signature covers as well.
"""

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import jwt
import msgspec

from tapgate_client import ids
from tapgate_client.errors import ApiError, Code

ACCESS_TOKEN_LIFETIME = timedelta(days=1)

_ALGORITHM = "HS256"
#: The base64 decoder skips characters outside its alphabet, so without this check one token would
#: have many valid encodings.
_TOKEN_PATTERN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    sub: str
    email: str
    role: str
    iat: int
    exp: int


class VerifiedToken(msgspec.Struct, frozen=True):
    """Verified token content. `Sessions` checks that the session is active."""

    session_id: int
    admin_id: int
    expires_at: int


class AccessTokens:
    def __init__(self, secret: str) -> None:
        self._secret = secret
        # Whether a signature is valid never changes, and a client sends the same token repeatedly.
        self._verify_cached = lru_cache(maxsize=1000)(self._verify)

    def issue(self, *, session_id: int, admin_id: int, email: str, role: str, now: datetime) -> str:
        issued = int(now.timestamp())
        claims = Claims(
            sub=ids.encode(ids.ADMIN, admin_id),
            email=email,
            role=role,
            iat=issued,
            exp=issued + int(ACCESS_TOKEN_LIFETIME.total_seconds()),
        )
        return jwt.encode(
            msgspec.to_builtins(claims),
            self._secret,
            algorithm=_ALGORITHM,
            headers={"sid": ids.encode(ids.SESSION, session_id)},
        )

    def verify(self, text: str, now: datetime) -> VerifiedToken:
        """Return a token's content; raise 401 if it is invalid or expired."""
        token = self._verify_cached(text)
        if token.expires_at <= now.timestamp():
            raise ApiError(Code.UNAUTHORIZED, "The access token has expired.")
        return token

    def _verify(self, text: str) -> VerifiedToken:
        header, claims = self._decode(text)
        session_id = ids.decode(ids.SESSION, str(header.get("sid")))
        admin_id = ids.decode(ids.ADMIN, claims.sub)
        if session_id is None or admin_id is None:
            raise _build_invalid_token_error()
        return VerifiedToken(session_id, admin_id, claims.exp)

    def _decode(self, text: str) -> tuple[dict[str, Any], Claims]:
        if _TOKEN_PATTERN.fullmatch(text) is None:
            raise _build_invalid_token_error()
        try:
            # Expiry is checked in `verify` against the platform's clock, not the library's.
            decoded = jwt.decode_complete(
                text,
                self._secret,
                algorithms=[_ALGORITHM],
                options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
            )
            return decoded["header"], msgspec.convert(decoded["payload"], Claims)
        except (jwt.InvalidTokenError, msgspec.ValidationError):
            raise _build_invalid_token_error() from None


def _build_invalid_token_error() -> ApiError:
    return ApiError(Code.UNAUTHORIZED, "The access token is malformed or its signature is invalid.")
