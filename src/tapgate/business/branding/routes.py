"""Branding endpoints."""

from functools import partial
from hashlib import sha256

import msgspec

from tapgate.business.branding import operations
from tapgate.business.branding.model import Branding, to_record
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import FILE_MEDIA_TYPE, MEBIBYTE, Endpoints, Reply
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.branding import BrandingRecord, BrandingUpdate

endpoints = Endpoints(
    "Branding", "/api/v1/admin/branding", objects=ObjectAccess.NO_OBJECT, owners=NEVER
)

_PUBLIC = Access(public=True)


@endpoints.get("", access=_PUBLIC)
async def get_branding(request: RequestContext) -> BrandingRecord:
    """Get the branding.

    The sign-in page shows it, so no credential is required. After a change, it may be a few seconds
    old.
    """
    return to_record(await _get(request))


@endpoints.get(
    "/logo",
    access=_PUBLIC,
    media=("image/png", FILE_MEDIA_TYPE),
    errors=(Code.NOT_FOUND,),
    any_query="Pages add a version to the address, so that browsers load a new logo.",
)
async def get_branding_logo(request: RequestContext) -> Reply[bytes]:
    """Get the logo, a PNG image."""
    reply = build_logo_reply(await _get(request))
    return msgspec.structs.replace(
        reply, content_type=request.negotiate_file_type(reply.content_type)
    )


async def _describe_update(request: GuardedRequest, body: BrandingUpdate) -> Proposal:
    await operations.decode_logo(body.logo)
    return Proposal(
        operations=(Operation.BRANDING,),
        summary="Change the branding",
        before=msgspec.to_builtins(to_record(await _get(request, fresh=True))),
    )


async def _decode_logo(request: GuardedRequest, body: BrandingUpdate) -> bytes | None:
    return await operations.decode_logo(body.logo)


@endpoints.put(
    "",
    access=Access(roles="A"),
    body_limit=MEBIBYTE,
    guard=Guard(_describe_update, Operation.BRANDING),
    prepare=_decode_logo,
    step_up=True,
)
async def update_branding(
    request: GuardedRequest, tx: Transaction, body: BrandingUpdate, prepared: bytes | None
) -> BrandingRecord:
    """Change the branding.

    Fields that the request omits keep their values, and an empty string resets a field to its
    default. `name`, `color`, `support_contact` and the logo appear in the console, on the page of a
    tapped card and in PDF statements; `statement_header` appears in PDF statements only. The chat
    also shows `support_contact` to customers. `color` must have a contrast of at least 4.5:1 with
    white. `logo` is a PNG image with at most 1024 pixels per side, which is decoded and encoded
    again without metadata.
    """
    await operations.update(tx, request.actor, body, prepared)
    tx.after_commit(partial(_get, request, fresh=True))
    return to_record(await operations.load_branding(tx, request.services.settings))


def build_logo_reply(branding: Branding) -> Reply[bytes]:
    if branding.logo is None:
        raise ApiError(Code.NOT_FOUND, "There is no logo.")
    etag = f'"{sha256(branding.logo).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    return Reply(branding.logo, headers=headers, content_type="image/png")


async def _get(request: GuardedRequest, *, fresh: bool = False) -> Branding:
    services = request.services
    return await operations.get_branding(
        services.database, services.settings, services.clock(), fresh=fresh
    )
