"""Requests and responses for admins, sessions and API keys."""

from enum import StrEnum
from ipaddress import IPv6Network, ip_network
from typing import Annotated, Any, Final

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.clearable_fields import OrEmptyRule
from tapgate_client.schemas.common import Redacted
from tapgate_client.schemas.fields import (
    Choice,
    CompanyEmail,
    IdRule,
    IntegerRange,
    InvalidValueError,
    Label,
    ListLength,
    Password,
    Rule,
    Text,
    TextRule,
    Timestamp,
    TimestampRule,
)
from tapgate_client.schemas.owners import OptionalOwnerId, OwnerIdField
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.passkeys import AssertedCredential
from tapgate_client.schemas.values import (
    AdminName,
    CurrentPassword,
    EmailAddress,
    Example,
    Id,
    Name,
    ShownSecret,
    Time,
    Url,
)

_MAX_RATE_LIMIT: Final = 1_000_000
_MAX_NETWORKS: Final = 100


class AdminRole(StrEnum):
    SYSTEM_ADMIN = "system_admin"
    COMPLIANCE_USER = "compliance_user"
    SUPPORT_USER = "support_user"
    FINANCE_USER = "finance_user"
    MERCHANT_MANAGER = "merchant_manager"
    MERCHANT_CASHIER = "merchant_cashier"
    PARTNER_USER = "partner_user"
    AGENT_USER = "agent_user"


#: Roles of users who belong to an owner: a processor, partner or agent.
OWNER_ROLES: Final = (
    AdminRole.MERCHANT_MANAGER,
    AdminRole.MERCHANT_CASHIER,
    AdminRole.PARTNER_USER,
    AdminRole.AGENT_USER,
)
PLATFORM_ROLES: Final = tuple(role for role in AdminRole if role not in OWNER_ROLES)
#: Role of the platform's own people.
PlatformRole = Annotated[AdminRole, Choice(*PLATFORM_ROLES, name="PlatformRole")]


class AdminStatus(StrEnum):
    ACTIVE = "active"
    DISABLED = "disabled"


class Scope(StrEnum):
    """What an API key may do."""

    PAYMENTS_READ = "payments:read"
    PAYMENTS_WRITE = "payments:write"
    BALANCE_READ = "balance:read"
    SUBSCRIBERS_READ = "subscribers:read"
    SUBSCRIBERS_WRITE = "subscribers:write"
    CARDS_READ = "cards:read"
    CARDS_WRITE = "cards:write"


class OtpRule(TextRule):
    """Authenticator app code, or a recovery code."""

    example = "492039"

    def to_json_schema(self) -> dict[str, Any]:
        return {
            **super().to_json_schema(),
            "description": "Six-digit authenticator app code, or a recovery code",
        }


Otp = Annotated[str, OtpRule(32)]


class Login(msgspec.Struct, kw_only=True):
    email: CompanyEmail
    password: CurrentPassword
    otp: Otp | None = None


class Refresh(msgspec.Struct, kw_only=True):
    refresh_token: Annotated[
        str, TextRule(4096), Example("aB3kLm9QxT7vW2yZ")
    ]  # longer than any issued token


class Tokens(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """Response to a login or a refresh."""

    token: ShownSecret
    refresh_token: Annotated[str, Example("aB3kLm9QxT7vW2yZ")]
    expires_in: Annotated[int, Example(900)]
    #: True if the tokens can only be used to enroll a second factor; absent otherwise.
    enroll_only: bool | msgspec.UnsetType = msgspec.UNSET


class OidcStart(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """Where to continue a login with the identity provider, and what completes it."""

    authorization_url: str
    login_token: str


class OidcStepUp(msgspec.Struct, kw_only=True):
    """Identity provider's redirect to the console."""

    login_token: Annotated[str, TextRule(2048)]
    state: Text
    code: Annotated[str, TextRule(4096)]
    #: Issuer, if the provider sends it with the code.
    iss: Text | None = None


class OidcLogin(OidcStepUp, kw_only=True):
    password: CurrentPassword | None = None
    otp: Otp | None = None
    passkey: AssertedCredential | None = None


class OidcLogout(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    logout_url: str | None


class NewAdmin(msgspec.Struct, kw_only=True):
    """New admin. Without a password, the response has a link with which the admin sets one.

    `owner_id` is the processor, partner or agent that a user with such a role belongs to.
    """

    email: CompanyEmail
    password: Password | None = None
    name: Label
    role: AdminRole
    owner_id: OwnerIdField | None = None


class UserType(StrEnum):
    PLATFORM = "platform"
    OWNER = "owner"


class AdminFilters(PageQuery, kw_only=True):
    #: The platform's own people, or the users of processors, partners and agents.
    type: UserType | None = None
    owner_id: OwnerIdField | None = None


class AdminChanges(msgspec.Struct, kw_only=True):
    """Fields to change. Omitted fields keep their values."""

    name: Label | None = None
    role: AdminRole | None = None


class Factor(StrEnum):
    """Second factor that an admin can enroll."""

    TOTP = "totp"
    PASSKEY = "passkey"


class AdminFields(msgspec.Struct, frozen=True, kw_only=True):
    id: Id
    email: EmailAddress
    name: AdminName
    role: AdminRole
    #: Processor, partner or agent that the user belongs to; null for the platform's own people.
    owner_id: OptionalOwnerId
    created_at: Time
    last_login_at: Time | None


class Me(AdminFields, frozen=True, kw_only=True):
    """The authenticated admin.

    `factors` are the enrolled second factors, `recovery_codes` is the number of unused codes.
    """

    factors: list[Factor]
    recovery_codes: int


class Admin(AdminFields, frozen=True, kw_only=True):
    status: AdminStatus
    #: Who disabled the account: a user of its owner, whose managers can enable it again, or the
    #: platform. Null if the account is active.
    disabled_by: UserType | None
    #: Whether the admin signs in with single sign-on and has no password.
    sso: bool
    #: Enrolled second factors, also while the installation uses none.
    factors: list[Factor]
    #: IDs of the admins who may have had the admin's invitation or reset link, until a third admin
    #: confirms the account: those who have seen it, and the admin who asked for the account.
    link_seen_by: list[str]


class NewAdminRecord(Admin, frozen=True, kw_only=True):
    """New admin's record. `invitation` is present if no password was given."""

    invitation: "Invitation | msgspec.UnsetType" = msgspec.UNSET


class Invitation(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """Link with which the admin sets a password. It works once, until it expires."""

    url: Url
    expires_at: Time


class InvitationAcceptance(msgspec.Struct, kw_only=True):
    token: Annotated[str, TextRule(255)]
    password: Password


class NotEmptyRule(Rule):
    """List of at least one scope. Duplicates are removed."""

    example = ("payments:read", "balance:read")

    def check(self, value: list[str]) -> list[str]:
        if not value:
            raise InvalidValueError("must have at least one scope")
        return list(dict.fromkeys(value))

    def to_json_schema(self) -> dict[str, Any]:
        return {"minItems": 1}


class CidrRule(Rule):
    """Network in CIDR notation, or a single address."""

    example = "203.0.113.0/24"

    def check(self, value: str) -> str:
        try:
            network = ip_network(value)
        except ValueError:
            raise InvalidValueError(
                "must be a network in CIDR notation such as 203.0.113.0/24, without host bits"
            ) from None
        address = network.network_address
        if isinstance(network, IPv6Network) and (
            address.ipv4_mapped or address.scope_id is not None  # type: ignore[union-attr]
        ):
            raise InvalidValueError("must not be an IPv4-mapped network or have a zone ID")
        return str(network)

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": "Network in CIDR notation, IPv4 or IPv6"}


Scopes = Annotated[list[Scope], NotEmptyRule()]
RATE_RULE: Final = IntegerRange(1, _MAX_RATE_LIMIT)
RATE_RULE.example = 50
AllowedIps = Annotated[list[Annotated[str, CidrRule()]], ListLength(0, _MAX_NETWORKS)]


class NewApiKey(msgspec.Struct, kw_only=True):
    """New API key. With `owner_id`, the scopes apply to that processor, partner or agent only."""

    name: Label
    scopes: Scopes
    owner_id: OwnerIdField | None = None
    rate_limit: Annotated[int, RATE_RULE] | None = None
    burst: Annotated[int, RATE_RULE] | None = None
    allowed_ips: AllowedIps | None = None
    expires_at: Timestamp | None = None


class ApiKeyChanges(msgspec.Struct, kw_only=True):
    """Fields to change. Omitted fields keep their values."""

    name: Label | None = None
    scopes: Scopes | None = None
    rate_limit: Annotated[int | str, OrEmptyRule(RATE_RULE)] | None = None
    burst: Annotated[int | str, OrEmptyRule(RATE_RULE)] | None = None
    allowed_ips: AllowedIps | None = None
    expires_at: Annotated[str, OrEmptyRule(TimestampRule())] | None = None


class ApiKeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: Id
    name: Name
    scopes: list[Scope]
    #: Owner to which the scopes are limited; null for a key of the platform.
    owner_id: OptionalOwnerId
    prefix: Annotated[str, Example("svc_live_aB3k")]
    rate_limit: int | None
    burst: int | None
    allowed_ips: list[str] | None
    expires_at: Time | None
    last_used_at: Time | None
    created_at: Time
    #: Null for a key that was created on the command line.
    created_by: str | None
    created_by_name: str | None
    #: The last rotation; null if the key was not rotated.
    rotated_by: str | None
    rotated_by_name: str | None
    rotated_at: Time | None


class ScarceApprovers(msgspec.Struct, frozen=True, kw_only=True):
    """Approval rule without a spare approver.

    `available` people can approve, and the rule requires `approvers`.
    """

    operation: str
    roles: list[str]
    approvers: int
    available: Annotated[int, Example(1)]


class KnownSigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """Signing key that an admin created, of a processor, one of its terminals, or a partner."""

    api_key_id: Id
    processor_id: str | None
    terminal_id: str | None
    terminal_name: str | None
    partner_id: str | None
    #: Name of the processor or partner.
    owner_name: str
    created_at: Time
    last_used_at: Time | None


class KnownWebhookSecret(msgspec.Struct, frozen=True, kw_only=True):
    """Webhook endpoint whose secret an admin has received."""

    id: Id
    url: Url


class KnownPartnerSecret(msgspec.Struct, frozen=True, kw_only=True):
    """Partner whose webhook secret an admin has received."""

    id: Id
    name: str


class Offboarding(msgspec.Struct, frozen=True, kw_only=True):
    """What to do before an admin is disabled.

    The admin may have a copy of these secrets: rotate or delete them.
    """

    api_keys: list[ApiKeyRecord]
    signing_keys: list[KnownSigningKey]
    webhook_endpoints: list[KnownWebhookSecret]
    #: Partners whose webhook secret the admin has received.
    partners: list[KnownPartnerSecret]
    scarce_approvers: list[ScarceApprovers]


class ApiKeyFilters(PageQuery, kw_only=True):
    #: Only keys that this admin created or was the last to rotate.
    admin_id: Annotated[str, IdRule(ids.ADMIN)] | None = None


class ApiKeyWithSecret(Redacted, ApiKeyRecord, frozen=True, kw_only=True):
    """API key record that includes the key itself, returned only on creation and rotation."""

    key: Annotated[str, Example("returned only once")]
