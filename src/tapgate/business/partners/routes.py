"""Partner endpoints."""

from typing import Any

from tapgate.business.owners.signing_keys import (
    create_signing_key,
    delete_signing_key,
    list_signing_keys,
)
from tapgate.business.owners.status_transitions import (
    Transition,
    change_status,
    describe_activation,
)
from tapgate.business.partners import operations, queries
from tapgate.business.partners.model import ACTIVATE, SUSPEND, to_record
from tapgate.business.payments.transactions.money_requests import (
    build_memo,
    decode_id,
    format_amount,
    get_channel,
    submit_request,
    to_minor_units,
)
from tapgate.core.pagination import paginate
from tapgate.core.records import PartnerId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import Code
from tapgate_client.schemas.admin import Scope
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.common import OptionalReason, Rotation, SigningKeyCreated
from tapgate_client.schemas.pagination import Page, PageQuery
from tapgate_client.schemas.partners import (
    NewPartner,
    PartnerCreated,
    PartnerDeposit,
    PartnerDepositReceipt,
    PartnerFilters,
    PartnerKeyRecord,
    PartnerRecord,
    PartnerResponse,
    PartnerStatus,
    PartnerUpdate,
    PartnerWebhookSecret,
)

endpoints = Endpoints(
    "Partners",
    "/api/v1/admin/partners",
    access=Access(roles="A"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)
#: Finance reconciles and funds partners, but does not change them.
_READ_ACCESS = Access(roles="AF")
_OWN_KEYS = OwnerAccess(binding=Binding.PATH, roles="P", key_roles="")


async def _describe_creation(request: GuardedRequest, body: NewPartner) -> Proposal:
    """Describe a partner, whose signing key and webhook secret the maker receives."""
    overdraft = _parse_limit(request, body.overdraft_limit)
    if not overdraft:
        return Proposal(
            operations=(Operation.API_KEYS,), summary=f"Create partner {body.name} with its key"
        )
    return Proposal(
        operations=(Operation.OVERDRAFT_LIMITS, Operation.API_KEYS),
        summary=f"Create partner {body.name} with its key and an overdraft",
        amount=overdraft,
    )


async def _describe_update(
    request: GuardedRequest, id: int, body: PartnerUpdate
) -> Proposal | None:
    partner = await queries.get(request.services.database, id)
    overdraft = _parse_limit(request, body.overdraft_limit)
    if overdraft is None or overdraft == partner.overdraft:
        return None
    record = to_record(partner)
    return Proposal(
        operations=(Operation.OVERDRAFT_LIMITS,),
        summary=f"Change the overdraft limit of partner {partner.name}",
        resource_id=record.id,
        before={"name": record.name, "overdraft_limit": record.overdraft_limit},
        amount=overdraft,
    )


async def _describe_funding(request: GuardedRequest, id: str, body: PartnerDeposit) -> Proposal:
    partner = await queries.get(request.services.database, decode_id(ids.PARTNER, id))
    amount = to_minor_units(request, body.amount)
    return Proposal(
        operations=(Operation.PARTNER_FUND,),
        summary=f"Fund partner {partner.name} with {format_amount(request, amount)}",
        resource_id=id,
        amount=amount,
    )


def _parse_limit(request: GuardedRequest, limit: str | None) -> int | None:
    if limit is None:
        return None
    return money.parse(limit, request.services.settings.currency, allow_zero=True)


@endpoints.post(
    "",
    status=201,
    step_up=True,
    guard=Guard(_describe_creation, Operation.OVERDRAFT_LIMITS, Operation.API_KEYS),
    objects=ObjectAccess.NO_OBJECT,
)
async def create_partner(
    request: GuardedRequest, tx: Transaction, body: NewPartner
) -> PartnerCreated:
    """Create a partner with its signing key and webhook secret.

    The secrets are returned only in this response.
    """
    services, auth = request.services, request.services.authenticator
    partner, key, webhook_secret = await operations.create(
        tx,
        request.actor,
        body,
        currency=services.settings.currency,
        hmac_keys=auth.hmac_keys,
        webhook_secrets=auth.webhook_secrets,
    )
    return PartnerCreated(
        partner=to_record(partner),
        api_key_id=ids.encode(ids.KEY, key.id),
        hmac_secret=key.secret,
        webhook_secret=webhook_secret,
    )


@endpoints.get("", access=_READ_ACCESS, heavy="search")
async def list_partners(request: RequestContext, query: PartnerFilters) -> Page[PartnerRecord]:
    """List partners, newest first, or by name with `order=name`.

    `search` is either a complete partner ID or a list of words. Each word must occur, ignoring
    case, in the name, and at least one word must have 3 or more characters.
    """
    rows = await queries.list_page(request.services.database, query)
    return paginate(rows, query, to_record)


@endpoints.get("/{id}", access=_READ_ACCESS)
async def get_partner(request: RequestContext, id: PartnerId) -> PartnerRecord:
    """Get a partner."""
    return to_record(await queries.get(request.services.database, id))


@endpoints.put("/{id}", step_up=True, guard=Guard(_describe_update, Operation.OVERDRAFT_LIMITS))
async def update_partner(
    request: GuardedRequest, tx: Transaction, id: PartnerId, body: PartnerUpdate
) -> PartnerRecord:
    """Update a partner.

    Fields that are absent or null keep their values. `overdraft_limit` must not be lower than the
    overdraft in use.
    """
    return to_record(await operations.update(tx, request.actor, id, body))


@endpoints.post(
    "/{id}/fund",
    access=Access(roles="AF"),
    moves_money=True,
    guard=Guard(_describe_funding, Operation.PARTNER_FUND),
    errors=(Code.PARTNER_NOT_FOUND, Code.PARTNER_SUSPENDED),
    step_up=True,
    unnoticed=Unnoticed.NO_CHANGE,
)
async def fund_partner(
    request: GuardedRequest, id: str, body: PartnerDeposit
) -> Reply[PartnerDepositReceipt]:
    """Deposit money into a partner's account.

    The partner funds subscribers from this account.
    """
    command = Command(
        type=chart.PARTNER_DEPOSIT,
        channel=get_channel(request.principal),
        payer=commands.CASH_PARTY,
        payee=commands.partner_party(decode_id(ids.PARTNER, id)),
        amount=to_minor_units(request, body.amount),
        idempotency_key=build_idempotency_key(request, body),
        context=build_memo(None, body.reference),
    )
    result = await submit_request(request, command)
    return result.build_reply(
        PartnerDepositReceipt, "Partner funded", new_balance=result.payee_balance
    )


@endpoints.post("/{id}/suspend", errors=(Code.ALREADY_SUSPENDED,), unguarded=Unguarded.TAKES_RIGHTS)
async def suspend_partner(
    request: RequestContext, tx: Transaction, id: PartnerId, body: OptionalReason
) -> PartnerResponse:
    """Suspend a partner.

    Every process rejects the partner's keys and webhooks, normally before the response is sent.
    """
    return await _change_status(request, tx, id, SUSPEND, body.reason)


async def _describe_activation(
    request: GuardedRequest, id: int, body: OptionalReason
) -> Proposal | None:
    partner = to_record(await queries.get(request.services.database, id))
    is_allowed = partner.status in ACTIVATE.allowed
    summary = f"Reactivate partner {partner.name}"
    return describe_activation(Operation.API_KEYS, summary, partner, is_allowed=is_allowed)


@endpoints.post(
    "/{id}/activate",
    errors=(Code.NOT_SUSPENDED,),
    guard=Guard(_describe_activation, Operation.API_KEYS),
    step_up=True,
)
async def activate_partner(
    request: GuardedRequest, tx: Transaction, id: PartnerId, body: OptionalReason
) -> PartnerResponse:
    """Reactivate a suspended partner."""
    return await _change_status(request, tx, id, ACTIVATE, body.reason)


async def _change_status(
    request: GuardedRequest,
    tx: Transaction,
    id: int,
    transition: Transition[PartnerStatus],
    reason: str | None,
) -> PartnerResponse:
    partner = await change_status(
        tx,
        request.actor,
        queries.TABLE,
        id,
        transition,
        reason,
        to_record=to_record,
        hmac_keys=request.services.authenticator.hmac_keys,
    )
    return PartnerResponse(message=f"Partner {transition.event}", partner=to_record(partner))


async def _describe_credential(request: GuardedRequest, id: int, body: Any = None) -> Proposal:
    """Describe a new credential with which its holder can move the partner's money."""
    partner = to_record(await queries.get(request.services.database, id))
    is_key = request.path.endswith("/keys")
    verb = "Create a signing key for" if is_key else "Rotate the webhook secret of"
    return Proposal(
        operations=(Operation.API_KEYS,),
        summary=f"{verb} partner {partner.name}",
        resource_id=partner.id,
    )


@endpoints.post(
    "/{id}/rotate-webhook-secret",
    step_up=True,
    guard=Guard(_describe_credential, Operation.API_KEYS),
)
async def rotate_partner_webhook_secret(
    request: GuardedRequest, tx: Transaction, id: PartnerId, body: Rotation
) -> PartnerWebhookSecret:
    """Rotate a partner's webhook secret.

    `webhook_secret` is the new secret and is returned only in this response. The previous secret
    remains valid for `grace_seconds` (0 to 86,400, default 0). Another rotation invalidates the
    previous secret immediately.
    """
    secrets, grace_seconds = request.services.authenticator.webhook_secrets, body.grace_seconds or 0
    secret = await operations.rotate_webhook_secret(
        tx, request.actor, id, grace_seconds, webhook_secrets=secrets
    )
    return PartnerWebhookSecret(webhook_secret=secret)


@endpoints.post(
    "/{id}/keys",
    status=201,
    step_up=True,
    guard=Guard(_describe_credential, Operation.API_KEYS),
    owners=_OWN_KEYS,
)
async def create_partner_key(
    request: GuardedRequest, tx: Transaction, id: PartnerId
) -> SigningKeyCreated:
    """Create an additional signing key for a partner.

    Existing keys remain valid until they are deleted. All of a partner's keys share one set of
    idempotency keys. The secret is returned only in this response.
    """
    await queries.TABLE.require_exists(tx, id)
    hmac_keys = request.services.authenticator.hmac_keys
    return await create_signing_key(tx, request.actor, hmac_keys, partner_id=id)


@endpoints.get(
    "/{id}/keys",
    owners=OwnerAccess(binding=Binding.PATH, roles="P", scopes=(Scope.PAYMENTS_READ,)),
)
async def list_partner_keys(
    request: RequestContext, id: PartnerId, query: PageQuery
) -> Page[PartnerKeyRecord]:
    """List a partner's signing keys, newest first, without deleted keys."""
    return await list_signing_keys(request, queries.TABLE, id, query, PartnerKeyRecord)


@endpoints.delete(
    "/{id}/keys/{api_key_id}",
    errors=(Code.NOT_FOUND,),
    unguarded=Unguarded.TAKES_RIGHTS,
    objects=ObjectAccess.PARENT_IN_PATH,
    owners=_OWN_KEYS,
)
async def delete_partner_key(
    request: RequestContext, tx: Transaction, id: PartnerId, api_key_id: str
) -> None:
    """Delete a partner's signing key.

    Every process rejects the key, normally before the response is sent. The partner's last key can
    be deleted too.
    """
    key_id = decode_id(ids.KEY, api_key_id)
    await delete_signing_key(request, tx, queries.TABLE, id, key_id)
