"""Time-based one-time passwords (RFC 6238): six digits that change every 30 seconds."""

import hmac
from datetime import datetime
from typing import Final

import pyotp

_ISSUER: Final = "Tapgate"
_STEP_SECONDS: Final = 30
#: Steps before and after the current one that are accepted, for clocks that differ.
_TOLERATED_STEPS: Final = 1


def generate_secret() -> str:
    """Return a random 160-bit secret in base 32."""
    return pyotp.random_base32()


def find_step(secret: str, code: str, now: datetime) -> int | None:
    """Return the number of the time step to which a code belongs, or None if it is wrong."""
    totp = pyotp.TOTP(secret)
    current = int(now.timestamp()) // _STEP_SECONDS
    steps = range(current - _TOLERATED_STEPS, current + _TOLERATED_STEPS + 1)
    matches = [step for step in steps if _equals(totp.generate_otp(step), code)]
    return matches[-1] if matches else None


def build_url(secret: str, account: str) -> str:
    """Return the `otpauth` URL with which an authenticator app adds the account."""
    return pyotp.TOTP(secret).provisioning_uri(account, _ISSUER)


def render_qr(url: str) -> str:
    """Return a QR code as an SVG data URI."""
    import segno  # noqa: PLC0415 - few processes need it

    return segno.make(url, micro=False, error="m").svg_data_uri(scale=4, border=4, light="white")


def _equals(expected: str, code: str) -> bool:
    return hmac.compare_digest(expected.encode(), code.encode())
