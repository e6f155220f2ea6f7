"""Endpoint for the processor, partner or agent that the caller belongs to."""

from tapgate.business.owners import queries
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import Binding, OwnerAccess
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate_client.schemas.admin import AdminRole, Scope
from tapgate_client.schemas.owners import OwnerRecord

endpoints = Endpoints("Owners", objects=ObjectAccess.OWN)


@endpoints.get(
    "/api/v1/me/owner",
    access=Access(owners=True),
    owners=OwnerAccess(binding=Binding.OWNER, roles="MKPG", scopes=(Scope.PAYMENTS_READ,)),
)
async def get_own(request: RequestContext) -> OwnerRecord:
    """Get the processor, partner or agent that the user or API key belongs to.

    `status` is `active`, `suspended` or `terminated`. A cashier gets no balances. An agent's
    `balance` is the float.
    """
    view = request.owner_view
    assert view is not None, "only owners can access this endpoint"
    is_cashier = request.principal.role == AdminRole.MERCHANT_CASHIER
    return await queries.get_record(
        request.services.database, view.owner, with_balance=not is_cashier
    )
