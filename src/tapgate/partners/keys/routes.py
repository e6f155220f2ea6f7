"""Partner signing key endpoints."""

from tapgate import clock, ids
from tapgate.api.endpoint import Access, Endpoints
from tapgate.api.request_context import RequestContext
from tapgate.auth.hmac_keys import SigningKey
from tapgate.errors import Code
from tapgate.partners import queries
from tapgate.partners.keys import operations
from tapgate.partners.model import decode_partner_id
from tapgate.schemas.common import SigningKeyCreated
from tapgate.schemas.pagination import Page, PageQuery, paginate
from tapgate.schemas.partners import PartnerKeyRecord
from tapgate.transactions.submit import decode_id

endpoints = Endpoints("Partners")

_PATH = "/api/v1/admin/partners/{id}/keys"
_ACCESS = Access(roles="A")


def _to_record(key: SigningKey) -> PartnerKeyRecord:
    return PartnerKeyRecord(
        api_key_id=ids.encode(ids.KEY, key.id), created_at=clock.format_rfc3339(key.created_at)
    )


@endpoints.post(_PATH, access=_ACCESS, status=201, errors=(Code.PARTNER_NOT_FOUND,))
async def create_partner_key(request: RequestContext, id: str) -> SigningKeyCreated:
    """Create an additional signing key for a partner.

    Existing keys remain valid until they are deleted. All keys of a partner share one set of
    idempotency keys. The secret is returned only in this response.
    """
    key = await operations.create(request, decode_partner_id(id))
    return SigningKeyCreated(api_key_id=ids.encode(ids.KEY, key.id), hmac_secret=key.secret)


@endpoints.get(_PATH, access=_ACCESS, errors=(Code.PARTNER_NOT_FOUND,))
async def list_partner_keys(
    request: RequestContext, id: str, query: PageQuery
) -> Page[PartnerKeyRecord]:
    """List a partner's signing keys, newest first, without deleted keys."""
    services, partner_id = request.services, decode_partner_id(id)
    await queries.require_exists(services.database, partner_id)
    keys = await services.authenticator.hmac_keys.list_page(
        partner_id, before=query.before_id, limit=query.limit + 1
    )
    return paginate(keys, query.limit, key=lambda key: key.id, to_record=_to_record)


@endpoints.delete(
    f"{_PATH}/{{api_key_id}}", access=_ACCESS, errors=(Code.PARTNER_NOT_FOUND, Code.NOT_FOUND)
)
async def delete_partner_key(request: RequestContext, id: str, api_key_id: str) -> None:
    """Delete a partner's signing key.

    Every process rejects the key, normally before the response is sent. The partner's last key can
    be deleted too.
    """
    await operations.delete(request, decode_partner_id(id), decode_id(ids.KEY, api_key_id))
