"""Endpoints for signing keys that belong to a processor and its terminals.

To rotate a key, create a new key and delete the old one.
"""

from tapgate.business.merchants.processors import operations, queries
from tapgate.business.owners import signing_keys
from tapgate.business.payments.transactions.money_requests import decode_id
from tapgate.core.records import ProcessorId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.admin import Scope
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.common import SigningKeyCreated
from tapgate_client.schemas.pagination import Page, PageQuery
from tapgate_client.schemas.processors import NewSigningKey, SigningKeyRecord

endpoints = Endpoints(
    "Processors",
    "/api/v1/processors/{id}/keys",
    access=Access(roles="A"),
    owners=OwnerAccess(binding=Binding.PATH, roles="M", key_roles=""),
)


async def _describe_key(request: GuardedRequest, id: int, body: NewSigningKey) -> Proposal:
    processor = await queries.get(request.services.database, id)
    return Proposal(
        operations=(Operation.MERCHANT_KEYS,),
        summary=f"Create a signing key for merchant {processor.name}",
        resource_id=ids.encode(ids.PROCESSOR, id),
    )


@endpoints.post(
    "",
    status=201,
    errors=(Code.TERMINAL_NOT_FOUND,),
    step_up=True,
    guard=Guard(_describe_key, Operation.MERCHANT_KEYS),
    objects=ObjectAccess.PARENT_IN_PATH,
)
async def create_signing_key(
    request: GuardedRequest, tx: Transaction, id: ProcessorId, body: NewSigningKey
) -> SigningKeyCreated:
    """Create an additional signing key.

    The key belongs to the processor, or to the terminal `terminal_id`. Existing keys remain valid
    until they are deleted. All of a terminal's keys share one set of idempotency keys, as do all
    keys of the processor itself. The secret is returned only in this response.
    """
    requested_id = body.terminal_id
    terminal_id = None if requested_id is None else decode_id(ids.TERMINAL, requested_id)
    hmac_keys = request.services.authenticator.hmac_keys
    return await operations.create_key(tx, request.actor, id, terminal_id, hmac_keys=hmac_keys)


@endpoints.get(
    "",
    objects=ObjectAccess.ANY,
    owners=OwnerAccess(binding=Binding.PATH, roles="M", scopes=(Scope.PAYMENTS_READ,)),
)
async def list_signing_keys(
    request: RequestContext, id: ProcessorId, query: PageQuery
) -> Page[SigningKeyRecord]:
    """List a processor's signing keys, including its terminals' keys.

    Newest first, without deleted keys. `last_used_at` is accurate to within a few seconds.
    """
    return await signing_keys.list_signing_keys(request, queries.TABLE, id, query, SigningKeyRecord)


@endpoints.delete(
    "/{api_key_id}",
    errors=(Code.NOT_FOUND,),
    unguarded=Unguarded.TAKES_RIGHTS,
    objects=ObjectAccess.PARENT_IN_PATH,
)
async def delete_signing_key(
    request: RequestContext, tx: Transaction, id: ProcessorId, api_key_id: str
) -> None:
    """Delete a signing key.

    Every process rejects the key, normally before the response is sent. The processor's last key
    can be deleted too.
    """
    key_id = decode_id(ids.KEY, api_key_id)
    await signing_keys.delete_signing_key(request, tx, queries.TABLE, id, key_id)
