"""A request's authenticated caller."""

from datetime import datetime
from typing import Literal

import msgspec

from tapgate.auth.owners import Owner
from tapgate.runtime.client_addresses import Network

PrincipalKind = Literal["api_key", "admin", "processor", "partner", "service"]


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Authenticated caller. Only the numeric ids that apply to its kind are set.

    `id` is `key_...` for an API key and for a processor's, terminal's, or partner's signing key,
    `adm_...` for an admin, and the name for an internal service.
    """

    kind: PrincipalKind
    id: str
    name: str
    role: str | None = None
    scopes: frozenset[str] = frozenset()
    key_id: int | None = None
    admin_id: int | None = None
    session_id: int | None = None
    #: Whether the session may only enroll a second factor.
    enroll_only: bool = False
    #: Whether the admin has a second factor, and when the session last verified one.
    has_factor: bool = False
    factor_at: datetime | None = None
    is_console: bool = False
    #: Whether the session was started with single sign-on, and when it was started.
    is_sso: bool = False
    signed_in_at: datetime | None = None
    #: Whether sensitive actions need a recent `factor_at`.
    needs_step_up: bool = False
    processor_id: int | None = None
    terminal_id: int | None = None
    partner_id: int | None = None
    #: Idempotency key scope for the terminal, processor, or partner that owns a signing key.
    owner_scope: str | None = None
    #: Scopes under which the owner's requests may be stored; empty if `idempotency_scope` is the
    #: only one.
    lookup_scopes: tuple[str, ...] = ()
    #: Processor, partner or agent to which a user or an API key is limited; None for the platform's
    #: own people and keys.
    owner: Owner | None = None
    #: API key rate limit; None for the platform's default.
    rate_limit: int | None = None
    burst: int | None = None
    #: Networks from which an API key may be used; empty for any address.
    allowed_ips: tuple[Network, ...] = ()

    @property
    def idempotency_scope(self) -> str:
        """The caller's idempotency key scope: a signing key's owner, or else the caller."""
        return self.owner_scope or self.rate_limit_key

    @property
    def is_staff(self) -> bool:
        """Whether the caller is one of the platform's own people."""
        return self.kind == "admin" and self.owner is None

    @property
    def pin_credential(self) -> str | None:
        """Credential whose wrong PINs are counted; None for a service, which acts for phones."""
        return None if self.kind == "service" else self.id

    @property
    def rate_limit_key(self) -> str:
        """The caller's rate limit bucket key: one per key, admin, or service."""
        return f"service:{self.id}" if self.kind == "service" else self.id
