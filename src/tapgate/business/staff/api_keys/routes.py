"""API key endpoints."""

from collections.abc import Collection

import msgspec

from tapgate.business.staff.api_keys import model, operations
from tapgate.core.pagination import paginate
from tapgate.core.records import ApiKeyId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.admin import (
    ApiKeyChanges,
    ApiKeyFilters,
    ApiKeyRecord,
    ApiKeyWithSecret,
    NewApiKey,
    Scope,
)
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.common import Rotation
from tapgate_client.schemas.pagination import Page

endpoints = Endpoints(
    "Admin",
    "/api/v1/admin/api-keys",
    access=Access(roles="A"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)


async def _describe_creation(request: GuardedRequest, body: NewApiKey) -> Proposal | None:
    if Scope.PAYMENTS_WRITE not in body.scopes:
        return None
    return Proposal(operations=(Operation.API_KEYS,), summary=f"Create API key {body.name}")


async def _describe_update(
    request: GuardedRequest, id: int, body: ApiKeyChanges
) -> Proposal | None:
    return await _describe_change(request, id, "Change", body.scopes or ())


async def _describe_rotation(request: GuardedRequest, id: int, body: Rotation) -> Proposal | None:
    return await _describe_change(request, id, "Rotate", ())


async def _describe_change(
    request: GuardedRequest, id: int, verb: str, new_scopes: Collection[str]
) -> Proposal | None:
    """Describe a change to a key that can pay, before or after the change."""
    services = request.services
    key = model.to_record(await services.authenticator.api_keys.get(services.database, id))
    if Scope.PAYMENTS_WRITE not in (*key.scopes, *new_scopes):
        return None
    return Proposal(
        operations=(Operation.API_KEYS,),
        summary=f"{verb} API key {key.name}",
        resource_id=key.id,
        before=msgspec.to_builtins(key),
    )


@endpoints.post(
    "",
    status=201,
    step_up=True,
    guard=Guard(_describe_creation, Operation.API_KEYS),
    objects=ObjectAccess.NO_OBJECT,
    errors=(Code.PROCESSOR_NOT_FOUND, Code.PARTNER_NOT_FOUND, Code.AGENT_NOT_FOUND),
)
async def create_api_key(
    request: GuardedRequest, tx: Transaction, body: NewApiKey
) -> ApiKeyWithSecret:
    """Create an API key.

    `key` is returned only in this response. Later responses contain only its `prefix`. The key
    starts with `svc_live_` in production and with `svc_test_` elsewhere, and is valid only in the
    installation in which it was created.

    `rate_limit` (requests per second) and `burst` default to the platform's values. If
    `allowed_ips` (networks in CIDR notation) is set, requests from other addresses get 403
    `FORBIDDEN`. Without `expires_at` the key does not expire. With `owner_id`, the key sees and
    changes only data of this processor, partner or agent, within its scopes.
    """
    admin_id = request.principal.admin_id
    assert admin_id is not None, "only admins can access this endpoint"
    services = request.services
    key, secret = await operations.create(
        tx, request.actor, body, created_by=admin_id, api_keys=services.authenticator.api_keys
    )
    return model.to_record_with_secret(key, secret)


@endpoints.get("")
async def list_api_keys(request: RequestContext, query: ApiKeyFilters) -> Page[ApiKeyRecord]:
    """List API keys.

    Newest first, without deleted keys and without the secrets. `last_used_at` is accurate to within
    a minute. `admin_id` selects the keys that an admin created or was the last to rotate: rotate or
    delete them when the admin leaves.
    """
    keys = await request.services.authenticator.api_keys.list_page(
        before=query.before_id,
        limit=query.limit + 1,
        admin_id=None if query.admin_id is None else ids.decode(ids.ADMIN, query.admin_id),
    )
    return paginate(keys, query, model.to_record)


@endpoints.get("/{id}")
async def get_api_key(request: RequestContext, id: ApiKeyId) -> ApiKeyRecord:
    """Get an API key."""
    services = request.services
    key = await services.authenticator.api_keys.get(services.database, id)
    return model.to_record(key)


@endpoints.put("/{id}", step_up=True, guard=Guard(_describe_update, Operation.API_KEYS))
async def update_api_key(
    request: GuardedRequest, tx: Transaction, id: ApiKeyId, body: ApiKeyChanges
) -> ApiKeyRecord:
    """Update an API key.

    Omitted fields keep their values. An empty string resets `rate_limit`, `burst` or `expires_at`
    to its default, and an empty list removes the `allowed_ips` restriction. The change takes effect
    in every process, normally before the response is sent.
    """
    key = await operations.update(
        tx, request.actor, id, body, api_keys=request.services.authenticator.api_keys
    )
    return model.to_record(key)


@endpoints.post("/{id}/rotate", step_up=True, guard=Guard(_describe_rotation, Operation.API_KEYS))
async def rotate_api_key(
    request: GuardedRequest, tx: Transaction, id: ApiKeyId, body: Rotation
) -> ApiKeyWithSecret:
    """Rotate an API key.

    `key` is the new key and is returned only in this response. The ID, settings and idempotency
    keys stay the same. The old key remains valid for `grace_seconds` (0 to 86,400, default 0), but
    not beyond `expires_at`. Another rotation invalidates the old key immediately.
    """
    services, admin_id = request.services, request.principal.admin_id
    assert admin_id is not None, "only admins can access this endpoint"
    key, secret = await operations.rotate(
        tx,
        request.actor,
        id,
        body.grace_seconds or 0,
        rotated_by=admin_id,
        api_keys=services.authenticator.api_keys,
    )
    return model.to_record_with_secret(key, secret)


@endpoints.delete("/{id}", unguarded=Unguarded.TAKES_RIGHTS)
async def delete_api_key(request: RequestContext, tx: Transaction, id: ApiKeyId) -> None:
    """Delete an API key.

    Every process rejects the key, normally before the response is sent.
    """
    await operations.delete(tx, request.actor, id, api_keys=request.services.authenticator.api_keys)
