"""The endpoints of API keys."""

from tapgate.admin.api_keys import model, operations
from tapgate.admin.api_keys.model import ApiKeyChanges, ApiKeyRecord, ApiKeyWithSecret, NewApiKey
from tapgate.edge.endpoint import Access, Endpoints
from tapgate.edge.pagination import Page, PageQuery, paginate
from tapgate.edge.request_context import RequestContext
from tapgate.edge.shared_structs import Rotation
from tapgate.errors import Code

endpoints = Endpoints("Admin")

_PATH = "/api/v1/admin/api-keys"
_ACCESS = Access(roles="A")


@endpoints.post(_PATH, access=_ACCESS, status=201)
async def create_api_key(call: RequestContext, body: NewApiKey) -> ApiKeyWithSecret:
    """Create an API key.

    `key` is shown in this response only; later responses show its `prefix`. It starts with
    `svc_live_` in production and with `svc_test_` elsewhere, and works only where it was created.
    `rate_limit` (requests per second) and `burst` default to the platform's. With `allowed_ips`
    (networks in CIDR notation) a request from any other address gets 403 `FORBIDDEN`. Without
    `expires_at` the key does not expire.
    """
    admin_id = call.principal.admin_id
    assert admin_id is not None, "the endpoint is open to admins only"
    key, secret = await operations.create(call.services, call.origin, body, created_by=admin_id)
    return model.to_record_with_secret(key, secret)


@endpoints.get(_PATH, access=_ACCESS)
async def list_api_keys(call: RequestContext, query: PageQuery) -> Page[ApiKeyRecord]:
    """List API keys.

    Newest first, without deleted ones and without the keys themselves. `last_used_at` is exact to
    within a minute.
    """
    keys = await call.services.authenticator.api_keys.list_page(
        before=query.before_id, limit=query.limit + 1
    )
    return paginate(keys, query.limit, lambda key: key.id, model.to_record)


@endpoints.get(f"{_PATH}/{{id}}", access=_ACCESS, errors=(Code.NOT_FOUND,))
async def get_api_key(call: RequestContext, id: str) -> ApiKeyRecord:
    """Get an API key."""
    key = await call.services.authenticator.api_keys.get(model.decode_id(id))
    if key is None:
        raise model.not_found()
    return model.to_record(key)


@endpoints.put(f"{_PATH}/{{id}}", access=_ACCESS, errors=(Code.NOT_FOUND,))
async def update_api_key(call: RequestContext, id: str, body: ApiKeyChanges) -> ApiKeyRecord:
    """Change an API key.

    Absent fields stay as they are. An empty string resets `rate_limit`, `burst` and `expires_at` to
    their defaults, an empty list lifts `allowed_ips`. The change takes effect immediately, in every
    process.
    """
    key = await operations.update(call.services, call.origin, model.decode_id(id), body)
    return model.to_record(key)


@endpoints.post(f"{_PATH}/{{id}}/rotate", access=_ACCESS, errors=(Code.NOT_FOUND,))
async def rotate_api_key(call: RequestContext, id: str, body: Rotation) -> ApiKeyWithSecret:
    """Rotate an API key.

    `key` is the new key, shown in this response only. Its id, settings and idempotency keys stay
    the same. The old key works until `grace_seconds` (0 to 86,400, default 0) have passed; a
    further rotation ends it immediately.
    """
    key, secret = await operations.rotate(
        call.services, call.origin, model.decode_id(id), body.grace_seconds or 0
    )
    return model.to_record_with_secret(key, secret)


@endpoints.delete(f"{_PATH}/{{id}}", access=_ACCESS, errors=(Code.NOT_FOUND,))
async def delete_api_key(call: RequestContext, id: str) -> None:
    """Delete an API key.

    Every process refuses it immediately.
    """
    await operations.delete(call.services, call.origin, model.decode_id(id))
