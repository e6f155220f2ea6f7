"""Endpoints for the signing keys of a processor and its terminals.

To rotate a key, create a new key and delete the old one.
"""

from tapgate import ids
from tapgate.api.endpoint import Access, Endpoints
from tapgate.api.request_context import RequestContext
from tapgate.auth.hmac_keys import SigningKey
from tapgate.errors import Code
from tapgate.processors import operations, queries
from tapgate.schemas.common import SigningKeyCreated
from tapgate.schemas.pagination import Page, PageQuery, paginate
from tapgate.schemas.processors import NewSigningKey, SigningKeyRecord
from tapgate.schemas.records import build_record, require_id
from tapgate.transactions.submit import decode_id

endpoints = Endpoints("Processors")

_ACCESS = Access(roles="A")


def _to_record(key: SigningKey) -> SigningKeyRecord:
    return build_record(SigningKeyRecord, key, api_key_id=ids.encode(ids.KEY, key.id))


@endpoints.post(
    "/api/v1/processors/{id}/keys",
    access=_ACCESS,
    status=201,
    errors=(Code.PROCESSOR_NOT_FOUND, Code.TERMINAL_NOT_FOUND),
)
async def create_signing_key(
    request: RequestContext, id: str, body: NewSigningKey
) -> SigningKeyCreated:
    """Create an additional signing key.

    The key belongs to the processor, or to the terminal `terminal_id`. Existing keys remain valid
    until they are deleted. All keys of a terminal share one set of idempotency keys, as do all keys
    of the processor itself. The secret is returned only in this response.
    """
    requested_id = body.terminal_id
    terminal_id = None if requested_id is None else decode_id(ids.TERMINAL, requested_id)
    services, processor_id = request.services, require_id(ids.PROCESSOR, id)
    hmac_keys = services.authenticator.hmac_keys
    async with services.transaction() as tx:
        key = await operations.create_key(
            tx, request.actor, processor_id, terminal_id, hmac_keys=hmac_keys
        )
    return SigningKeyCreated(api_key_id=ids.encode(ids.KEY, key.id), hmac_secret=key.secret)


@endpoints.get("/api/v1/processors/{id}/keys", access=_ACCESS, errors=(Code.PROCESSOR_NOT_FOUND,))
async def list_signing_keys(
    request: RequestContext, id: str, query: PageQuery
) -> Page[SigningKeyRecord]:
    """List the signing keys of a processor and its terminals.

    Newest first, without deleted keys.
    """
    services, processor_id = request.services, require_id(ids.PROCESSOR, id)
    await queries.require_exists(services.database, processor_id)
    keys = await services.authenticator.hmac_keys.list_page(processor_id, query)
    return paginate(keys, query, _to_record)


@endpoints.delete(
    "/api/v1/processors/{id}/keys/{api_key_id}",
    access=_ACCESS,
    errors=(Code.PROCESSOR_NOT_FOUND, Code.NOT_FOUND),
)
async def delete_signing_key(request: RequestContext, id: str, api_key_id: str) -> None:
    """Delete a signing key.

    Every process rejects the key, normally before the response is sent. The processor's last key
    can be deleted too.
    """
    services, processor_id = request.services, require_id(ids.PROCESSOR, id)
    key_id, hmac_keys = decode_id(ids.KEY, api_key_id), services.authenticator.hmac_keys
    async with services.transaction() as tx:
        await operations.delete_key(tx, request.actor, processor_id, key_id, hmac_keys=hmac_keys)
