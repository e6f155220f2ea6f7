"""Compliance check endpoint."""

from tapgate.business.compliance.check.model import build_result
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.core.records import require_id
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.ledger.commands import subscriber_party
from tapgate.ledger.decisions.assess import build_command
from tapgate_client import ids, money
from tapgate_client.errors import Code
from tapgate_client.schemas.compliance import ComplianceCheckRequest, ComplianceCheckResult

endpoints = Endpoints("Compliance", objects=ObjectAccess.UNRESTRICTED, owners=NEVER)


@endpoints.post(
    "/api/v1/compliance/check",
    access=Access(roles="AC", service=True),
    errors=(Code.SUBSCRIBER_NOT_FOUND, Code.OTP_REQUIRED),
    unguarded=Unguarded.NO_EFFECT,
    effect="reads",
)
async def check_compliance(
    request: RequestContext, body: ComplianceCheckRequest
) -> ComplianceCheckResult:
    """Check a transaction without executing it.

    The check covers status, limits and compliance rules, but not the sender's available funds. No
    money is moved, nothing is recorded, and no usage is counted. `violations` lists the error codes
    with which the transaction would be declined, and the types of the rules that would raise an
    alert or hold the transaction.

    `risk_level` is the highest violation severity, or LOW if there are no violations. `score` is 0
    if there are none, and otherwise 10 to 29 (LOW), 30 to 59 (MEDIUM), 60 to 84 (HIGH) or 85 to 100
    (CRITICAL).
    """
    services = request.services
    subscriber = await subscribers.get_accessible(
        services.database,
        request.caller,
        services.clock(),
        require_id(ids.SUBSCRIBER, body.subscriber_id),
    )
    command = build_command(
        body.transaction_type,
        money.parse(body.amount, services.settings.currency),
        subscriber_party(subscriber.id),
    )
    return build_result(await services.ledger.assess(services.database, command))
