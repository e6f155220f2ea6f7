"""How requests and webhooks are signed: pure functions, the same for who signs and who checks.

Everything is HMAC with SHA-256. `docs/signing.md` explains each signature with fixed examples.
A secret is bytes: the UTF-8 of the text that its owner was shown.
"""

import base64
import hmac
import os
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

#: How far a signed timestamp may be from now, either way.
WINDOW = timedelta(minutes=5)

#: What the text of a secret for events out begins with; the rest is its bytes in base 64.
STANDARD_SECRET_PREFIX = "whsec_"  # noqa: S105 - not a secret, what every one begins with
_STANDARD_SECRET_BYTES = 32

_RFC3339_UTC = re.compile(
    # Without 24:00, which is another day's midnight to some readers, and an error to others.
    r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)",
    re.ASCII | re.IGNORECASE,
)
_UNIX_SECONDS = re.compile(r"\d{1,11}", re.ASCII)


def signed_string(method: str, path: str, timestamp: str, body: bytes) -> bytes:
    """What a terminal or a partner signs: four lines. The path is as called, without the query."""
    return f"{method}\n{path}\n{timestamp}\n".encode() + body


def sign(secret: bytes, method: str, path: str, timestamp: str, body: bytes) -> str:
    """`X-Signature` of a request."""
    return _hex(secret, signed_string(method, path, timestamp, body))


def service_signed_string(method: str, path: str, query: bytes, timestamp: str) -> bytes:
    """What an internal service signs. The query is as sent, still encoded, and may be empty."""
    return b"%b|%b|%b|%b" % (method.encode(), path.encode(), query, timestamp.encode())


def sign_service(secret: bytes, method: str, path: str, query: bytes, timestamp: str) -> str:
    """`X-Service-Signature` of a request."""
    return _hex(secret, service_signed_string(method, path, query, timestamp))


def verify(secret: bytes, signature: str, signed: bytes) -> bool:
    """Whether a signature, in lower-case hex, is that of a signed string."""
    return _is_equal(signature, _hex(secret, signed))


def webhook_signature(secret: bytes, body: bytes) -> str:
    """`X-Webhook-Signature` of a funding partner's webhook."""
    return _hex(secret, body)


def verify_webhook(secret: bytes, signature: str, body: bytes) -> bool:
    """The signature is bare hex in either case, or has `sha256=` before it."""
    return verify(secret, signature.removeprefix("sha256=").lower(), body)


def new_standard_secret() -> str:
    """The text of a new secret for events out."""
    return STANDARD_SECRET_PREFIX + base64.b64encode(os.urandom(_STANDARD_SECRET_BYTES)).decode()


def standard_webhook_signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """`webhook-signature` of an event sent out (Standard Webhooks)."""
    key = base64.b64decode(secret.removeprefix(STANDARD_SECRET_PREFIX))
    digest = _digest(key, f"{message_id}.{timestamp}.".encode() + body)
    return f"v1,{base64.b64encode(digest).decode()}"


def verify_standard_webhook(
    secret: str, signatures: str, message_id: str, timestamp: int, body: bytes
) -> bool:
    """The header may hold several signatures, one of which must be right."""
    expected = standard_webhook_signature(secret, message_id, timestamp, body)
    return any(_is_equal(signature, expected) for signature in signatures.split(" "))


def parse_rfc3339_utc(text: str) -> datetime | None:
    """The moment of an `X-Timestamp`; None for what is not RFC 3339 in UTC."""
    if _RFC3339_UTC.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:  # well shaped, yet no such day or hour
        return None


def parse_unix_seconds(text: str) -> datetime | None:
    """The moment of an `X-Service-Timestamp`; None for what is not whole seconds."""
    if _UNIX_SECONDS.fullmatch(text) is None:
        return None
    return datetime.fromtimestamp(int(text), UTC)


def is_timely(moment: datetime, now: datetime) -> bool:
    return -WINDOW <= now - moment <= WINDOW


def _hex(secret: bytes, message: bytes) -> str:
    return _digest(secret, message).hex()


def _digest(secret: bytes, message: bytes) -> bytes:
    prepared = _get_hmac(secret).copy()
    prepared.update(message)
    return prepared.finalize()


@lru_cache(maxsize=10_000)
def _get_hmac(secret: bytes) -> HMAC:
    # Preparing a key costs more than signing a request with it.
    return HMAC(secret, SHA256())


def _is_equal(given: str, expected: str) -> bool:
    # As bytes: the comparison of texts refuses what is not ASCII with an exception.
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())
