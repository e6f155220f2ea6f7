"""Owner access: which operations an owner's users and API keys have, and how foreign objects hide.

Every gateway endpoint declares `owners=`. An endpoint without a declaration is closed to owners,
and a test rejects it. Before the handler runs, each ID of a foreign object that the request names
is replaced by an ID that no record has. The response is then exactly that for an unknown ID,
whatever the handler does. Lists limit their query with `auth.owners.limit_to_owner`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Self

import msgspec

from tapgate.auth.owners import (
    KEY_ROLES,
    OWNER_PREFIXES,
    OwnedRows,
    Owner,
    OwnerView,
    is_active,
    is_visible,
)
from tapgate.auth.principals import Principal
from tapgate.http.endpoint import Endpoint
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminRole, Scope
from tapgate_client.schemas.owners import OwnerType

OWNER_ROLES_BY_LETTER: Final[Mapping[str, str]] = {
    "M": AdminRole.MERCHANT_MANAGER,
    "K": AdminRole.MERCHANT_CASHIER,
    "P": AdminRole.PARTNER_USER,
    "G": AdminRole.AGENT_USER,
}
#: No record has this ID.
_UNKNOWN_ID: Final = 0
_SUSPENDED_CODES: Final[Mapping[OwnerType, Code]] = {
    OwnerType.PROCESSOR: Code.PROCESSOR_SUSPENDED,
    OwnerType.PARTNER: Code.PARTNER_SUSPENDED,
    OwnerType.AGENT: Code.AGENT_NOT_ACTIVE,
}


class Binding(Enum):
    """How an operation's object or list belongs to an owner, with title and description."""

    title: str
    description: str

    def __new__(cls, title: str, description: str) -> Self:
        member = object.__new__(cls)
        member._value_ = title
        member.title = title
        member.description = description
        return member

    NEVER = ("never", "Owners never reach the operation: 403 `FORBIDDEN`.")
    USER = ("own user", "The operation applies to the user or session of the token.")
    OWNER = ("own record", "The operation applies to the owner of the caller.")
    SHARED = ("shared", "The rules are the same for everyone and may be read.")
    PATH = ("owner in path", "The path names the owner. Another owner is an unknown ID.")
    BODY = (
        "owner in body",
        "The body names the owner, or without the field it is the owner of the caller. Another"
        " owner is an unknown ID.",
    )
    ROW = ("own object", "The object must belong to the owner. Another object is an unknown ID.")
    LIST = ("own list", "The list has only records of the owner.")


class OwnerAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How owners reach an endpoint.

    `roles` are letters of `OWNER_ROLES_BY_LETTER`. An owner's API key has the operations of the
    role in `KEY_ROLES` if it has one of the `scopes` or the scope that the endpoint's access names.
    `key_roles` are these roles if they differ from `roles`. `parameter` is the path parameter or
    the body field with the ID. `while_suspended` are changes that a suspended owner may make.
    """

    binding: Binding
    roles: str = ""
    key_roles: str | None = None
    scopes: tuple[str, ...] = ()
    rows: OwnedRows | None = None
    parameter: str = "id"
    while_suspended: bool = False

    def __post_init__(self) -> None:
        unknown = {*self.roles, *(self.key_roles or "")} - OWNER_ROLES_BY_LETTER.keys()
        if unknown:
            raise TypeError(f"unknown roles: {unknown}")
        if (self.rows is not None) != (self.binding in (Binding.ROW, Binding.LIST)):
            raise TypeError("the rows of an object or a list are required")

    @property
    def role_names(self) -> frozenset[str]:
        return frozenset(OWNER_ROLES_BY_LETTER[letter] for letter in self.roles)

    @property
    def key_role_names(self) -> frozenset[str]:
        letters = self.roles if self.key_roles is None else self.key_roles
        return frozenset(OWNER_ROLES_BY_LETTER[letter] for letter in letters)


NEVER: Final = OwnerAccess(binding=Binding.NEVER)
#: Operations on the user's own account, which a suspended owner's users keep.
OWN_USER: Final = OwnerAccess(binding=Binding.USER, roles="MKPG", while_suspended=True)

#: Rules that everyone may read.
SHARED: Final = OwnerAccess(binding=Binding.SHARED, roles="MKPG", scopes=(Scope.PAYMENTS_READ,))


def get_owner_access(endpoint: Endpoint) -> OwnerAccess:
    return endpoint.owners or NEVER


def get_rejection(endpoint: Endpoint, principal: Principal) -> ApiError | None:
    """Return why a principal may not call an endpoint, or None."""
    access, required = get_owner_access(endpoint), list[str]()
    if principal.owner is None or access.binding is Binding.NEVER:
        rejection: ApiError | None = endpoint.access.get_rejection(principal)
        return rejection
    if principal.kind == "api_key":
        scopes = {*access.scopes, endpoint.access.scope} - {None}
        if KEY_ROLES[principal.owner.type] in access.key_role_names:
            if scopes & principal.scopes:
                return None
            required = sorted(scopes)
    elif principal.role in access.role_names:
        return None
    return ApiError(
        Code.FORBIDDEN,
        "You don't have permission to do this.",
        details={"required": required or sorted(access.role_names)},
    )


async def bind(
    endpoint: Endpoint, database: Database, view: OwnerView, arguments: dict[str, Any]
) -> None:
    """Limit a call to the owner: reject changes while suspended, and hide foreign objects."""
    access, owner = get_owner_access(endpoint), view.owner
    changes = endpoint.effect != "reads" and not access.while_suspended
    if changes and not await is_active(database, owner):
        raise ApiError(_SUSPENDED_CODES[owner.type])
    if access.binding is Binding.PATH:
        _hide_foreign_owner(endpoint, owner, arguments, access.parameter)
    elif access.binding is Binding.BODY:
        _bind_body(owner, arguments["body"], access.parameter)
    elif access.binding is Binding.ROW:
        assert access.rows is not None
        if not await is_visible(database, view, access.rows, arguments[access.parameter]):
            arguments[access.parameter] = _UNKNOWN_ID


def _hide_foreign_owner(
    endpoint: Endpoint, owner: Owner, arguments: dict[str, Any], parameter: str
) -> None:
    prefix = endpoint.id_prefixes[parameter]
    if (prefix, arguments[parameter]) != (OWNER_PREFIXES[owner.type], owner.id):
        arguments[parameter] = _UNKNOWN_ID


def _bind_body(owner: Owner, body: msgspec.Struct, field: str) -> None:
    public_id = getattr(body, field)
    if public_id is None:
        setattr(body, field, owner.public_id)
    elif public_id != owner.public_id:
        prefix = next((each for each in OWNER_PREFIXES.values() if public_id.startswith(each)), "")
        setattr(body, field, ids.encode(prefix, _UNKNOWN_ID))
