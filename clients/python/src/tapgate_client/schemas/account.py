"""Requests and responses for an admin's own account."""

from typing import Annotated, ClassVar

import msgspec

from tapgate_client.schemas.admin import Admin, Otp
from tapgate_client.schemas.common import Redacted, build_missing_field_error
from tapgate_client.schemas.fields import Password
from tapgate_client.schemas.passkeys import AssertedCredential
from tapgate_client.schemas.values import CurrentPassword, Example, Id, IpAddress, Time


class TotpEnrollment(msgspec.Struct, kw_only=True):
    current_password: CurrentPassword | None = None


class TotpCode(msgspec.Struct, kw_only=True):
    code: Otp


class TotpSecret(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """A new secret for an authenticator app, which must be confirmed with a code."""

    secret: Annotated[str, Example("returned only once")]
    otpauth_url: str
    qr: str


class NewRecoveryCodes(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """Recovery codes. Each works once instead of a code, and no other response contains them."""

    recovery_codes: list[str]


class StepUp(msgspec.Struct, kw_only=True):
    """Either a code or a passkey proof."""

    OMITTED_IN_EXAMPLES: ClassVar = ("passkey",)

    otp: Otp | None = None
    passkey: AssertedCredential | None = None

    def __post_init__(self) -> None:
        if self.otp is None and self.passkey is None:
            raise build_missing_field_error("otp")


class VerifiedFactor(msgspec.Struct, frozen=True, kw_only=True):
    """Until when the session may be used for sensitive actions."""

    verified_until: Time


class PasswordChange(msgspec.Struct, kw_only=True):
    current_password: CurrentPassword
    new_password: Annotated[Password, Example("another long pass phrase")]


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: Id
    current: bool
    console: bool
    sso: bool
    ip: IpAddress | None
    user_agent: str | None
    created_at: Time
    last_seen_at: Time | None


class AdminDetails(Admin, frozen=True, kw_only=True):
    """Admin with what protects the account, and the newest 20 of its sessions.

    `invitation_expires_at` is present while the admin has an invitation or reset link that was not
    used. It may be in the past: the admin then needs a new link.
    """

    recovery_codes: int
    invitation_expires_at: Time | None
    sessions: list[SessionRecord]
