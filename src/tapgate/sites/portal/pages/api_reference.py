"""API reference of an owner: the operations that its users and keys may call."""

from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.site import Pages
from tapgate.sites.guide.reference.operations import Operation, Reference
from tapgate.sites.guide.reference.views import TagLink, list_tags
from tapgate_client.schemas.owners import OwnerType

pages = Pages()

#: Only developers have this page.
_REQUIRED: Final = "GET /api/v1/admin/webhook-endpoints"
#: Signature with which an owner's signing keys authenticate.
_SIGNATURES: Final = {
    OwnerType.PROCESSOR: "posSignature",
    OwnerType.PARTNER: "partnerSignature",
}
#: Anchors of the resources that an integration needs first, in this order.
_FIRST: Final = tuple(
    f"resource-{page}"
    for page in "pos in-app-payments partners transactions payouts processors webhooks".split()
)
#: Resources that portal pages cover and few integrations call.
_LAST: Final = frozenset(
    f"resource-{page}"
    for page in "account account-rules admin approvals commission-rules day-close fee-rules "
    "owners".split()
)


class _OperationRow(NamedTuple):
    method: str
    path: str
    title: str
    url: str
    is_signed: bool  # a signing key may call it


class _Group(NamedTuple):
    name: str
    anchor: str
    operations: list[_OperationRow]


@pages.get(f"{PORTAL}/api")
async def show_reference(request: PageRequest) -> Reply[bytes]:
    await request.require_access(_REQUIRED)
    principal = request.principal
    assert principal.owner is not None, "only users with an owner reach the portal"
    document = await request.read_openapi_document()
    groups = _list_groups(document, principal.owner.type, str(principal.role))
    search = (request.query.get("search") or "").strip()
    if search:
        groups = _search(groups, search)
    base_url = f"{request.context.services.settings.public_url}/api/v1"
    return request.render("portal/api.html", groups=groups, base_url=base_url, search=search)


@lru_cache(maxsize=8)
def _list_groups(document: bytes, owner_type: OwnerType, role: str) -> list[_Group]:
    """Return the operations by tag. Parsing the document takes longer than rendering the page."""
    reference = Reference(msgspec.json.decode(document))
    signature = _SIGNATURES.get(owner_type, "")
    groups = [
        _Group(tag.name, f"resource-{tag.page}", _list_operations(reference, tag, signature, role))
        for tag in list_tags(reference)
    ]
    return sorted((group for group in groups if group.operations), key=_get_rank)


def _get_rank(group: _Group) -> tuple[int, bool]:
    """Return the sort key: integration resources first, administration last.

    Signing key resources precede others of the same rank.
    """
    anchor = group.anchor
    rank = _FIRST.index(anchor) if anchor in _FIRST else len(_FIRST) + (anchor in _LAST)
    return rank, not any(row.is_signed for row in group.operations)


def _search(groups: list[_Group], text: str) -> list[_Group]:
    """Return the operations whose resource, title or path contains all words."""
    words = text.lower().split()
    found = [
        group._replace(
            operations=[
                row
                for row in group.operations
                if all(word in f"{group.name} {row.title} {row.path}".lower() for word in words)
            ]
        )
        for group in groups
    ]
    return [group for group in found if group.operations]


def _list_operations(
    reference: Reference, tag: TagLink, signature: str, role: str
) -> list[_OperationRow]:
    return [
        _OperationRow(
            *operation.routes[0],
            operation.summary,
            f"/guide/api/{tag.page}#{anchor}",
            _is_signed(operation, signature),
        )
        for operation, anchor in reference.sections[tag.name]
        if _is_signed(operation, signature) or _has_role(operation, role)
    ]


def _is_signed(operation: Operation, signature: str) -> bool:
    return any(signature in choice for choice in operation.spec["security"])


def _has_role(operation: Operation, role: str) -> bool:
    return any(role in choice.get("adminToken", ()) for choice in operation.spec["security"])
