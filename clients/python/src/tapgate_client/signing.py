"""Request and webhook signatures, computed by the same functions for signing and verification.

All signatures are HMAC-SHA-256. `docs/signing.md` explains each one with fixed examples. A secret
of type `bytes` is the UTF-8 encoding of the secret's text.
"""

import base64
import hmac
import os
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

#: Maximum difference between a signed timestamp and the current time, in either direction.
WINDOW = timedelta(minutes=5)

#: Prefix of the secret for outgoing webhooks; the rest is the secret's bytes in base64.
STANDARD_SECRET_PREFIX = "whsec_"  # noqa: S105 - a prefix, not a secret
_STANDARD_SECRET_BYTES = 32

_RFC3339_UTC = re.compile(
    # Excludes 24:00, which some parsers read as midnight of the next day and others reject.
    r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)",
    re.ASCII | re.IGNORECASE,
)
_UNIX_SECONDS = re.compile(r"\d{1,11}", re.ASCII)


def signed_string(method: str, path: str, timestamp: str, body: bytes) -> bytes:
    """Return the string that a processor, terminal or partner signs.

    `path` is as requested, without the query.
    """
    return f"{method}\n{path}\n{timestamp}\n".encode() + body


def sign(secret: bytes, method: str, path: str, timestamp: str, body: bytes) -> str:
    """Return the `X-Signature` of a request."""
    return _hex(secret, signed_string(method, path, timestamp, body))


def service_signed_string(method: str, path: str, query: bytes, timestamp: str) -> bytes:
    """Return the string that an internal service signs.

    `query` is as sent, still percent-encoded, and may be empty.
    """
    return b"%b|%b|%b|%b" % (method.encode(), path.encode(), query, timestamp.encode())


def sign_service(secret: bytes, method: str, path: str, query: bytes, timestamp: str) -> str:
    """Return the `X-Service-Signature` of a request."""
    return _hex(secret, service_signed_string(method, path, query, timestamp))


def verify(secret: bytes, signature: str, signed: bytes) -> bool:
    """Return whether a signature, in lowercase hex, matches a signed string."""
    return _is_equal(signature, _hex(secret, signed))


def webhook_signature(secret: bytes, body: bytes) -> str:
    """Return the `X-Webhook-Signature` of a funding partner's webhook."""
    return _hex(secret, body)


def verify_webhook(secret: bytes, signature: str, body: bytes) -> bool:
    """Return whether a funding partner's webhook signature matches.

    The signature is hex in either case, with or without the prefix `sha256=`.
    """
    return verify(secret, signature.removeprefix("sha256=").lower(), body)


def new_standard_secret() -> str:
    """Generate a secret for outgoing webhooks."""
    return STANDARD_SECRET_PREFIX + base64.b64encode(os.urandom(_STANDARD_SECRET_BYTES)).decode()


def standard_webhook_signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the `webhook-signature` of an outgoing event (Standard Webhooks)."""
    key = base64.b64decode(secret.removeprefix(STANDARD_SECRET_PREFIX))
    digest = _digest(key, f"{message_id}.{timestamp}.".encode() + body)
    return f"v1,{base64.b64encode(digest).decode()}"


def verify_standard_webhook(
    secret: str, signatures: str, message_id: str, timestamp: int, body: bytes
) -> bool:
    """Return whether at least one of the space-separated signatures is valid."""
    expected = standard_webhook_signature(secret, message_id, timestamp, body)
    return any(_is_equal(signature, expected) for signature in signatures.split(" "))


def parse_rfc3339_utc(text: str) -> datetime | None:
    """Parse an `X-Timestamp`; return None if it is not RFC 3339 in UTC."""
    if _RFC3339_UTC.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:  # well-formed, but not a valid date or time
        return None


def parse_unix_seconds(text: str) -> datetime | None:
    """Parse an `X-Service-Timestamp`; return None if it is not 1 to 11 digits."""
    if _UNIX_SECONDS.fullmatch(text) is None:
        return None
    return datetime.fromtimestamp(int(text), UTC)


def is_timely(moment: datetime, now: datetime) -> bool:
    return -WINDOW <= now - moment <= WINDOW


def _hex(secret: bytes, message: bytes) -> str:
    return _digest(secret, message).hex()


def _digest(secret: bytes, message: bytes) -> bytes:
    mac = _get_hmac(secret).copy()
    mac.update(message)
    return mac.digest()


@lru_cache(maxsize=10_000)
def _get_hmac(secret: bytes) -> hmac.HMAC:
    # Preparing a key costs more than signing a request with it.
    return hmac.new(secret, digestmod="sha256")


def _is_equal(value: str, expected: str) -> bool:
    # Compare bytes, because compare_digest raises an exception for non-ASCII strings.
    return hmac.compare_digest(value.encode(errors="replace"), expected.encode())
