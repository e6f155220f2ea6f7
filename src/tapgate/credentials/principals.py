"""Who is calling, once a credential has proved it."""

from typing import Literal

import msgspec

Kind = Literal["api_key", "admin", "processor", "partner", "service"]


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """A proven caller. The numbers are set where they apply to the kind.

    `id` is public: `key_...` for an API key and for a processor's or a partner's signing key,
    `adm_...` for an admin, the name for a service.
    """

    kind: Kind
    id: str
    name: str
    role: str | None = None
    scopes: frozenset[str] = frozenset()
    key_id: int | None = None
    admin_id: int | None = None
    session_id: int | None = None
    processor_id: int | None = None
    terminal_id: int | None = None
    partner_id: int | None = None

    @property
    def scope(self) -> str:
        """Whose request ids: an admin's are the same in every session, a key's its own."""
        return f"service:{self.id}" if self.kind == "service" else self.id
