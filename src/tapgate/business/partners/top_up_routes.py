"""Top-up endpoints: a partner funds a subscriber, by signed webhook or by API request."""

import contextlib
from functools import cache

from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.partners import queries
from tapgate.business.payments.transactions.customers import (
    build_customer_party,
    require_customer_access,
)
from tapgate.business.payments.transactions.money_requests import (
    decode_id,
    format_amount,
    get_channel,
    submit_request,
    to_minor_units,
)
from tapgate.core.message_templates import Notice
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.decoding import BodyDecoder
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, PartnerReference, Party, ScopedIdempotencyKey
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.partners import FundFromPartner, TopUpReceipt, WebhookTopUp
from tapgate_client.schemas.transactions import Channel

endpoints = Endpoints("Partners", owners=NEVER)

_SIGNATURE_HEADER = "X-Webhook-Signature"

_DECLINE_CODES = (
    Code.DUPLICATE_REFERENCE,
    Code.SUBSCRIBER_NOT_FOUND,
    Code.CARD_NOT_FOUND,
    Code.PARTNER_SUSPENDED,
    Code.COMPLIANCE_REJECTED,
    Code.INSUFFICIENT_FUNDS,
    Code.SUBSCRIBER_BLOCKED,
    Code.CARD_NOT_ACTIVE,
    Code.MAX_BALANCE_EXCEEDED,
)


def _require_partner(request: RequestContext, body: FundFromPartner) -> None:
    """Require `partner_id`, unless a partner signed the request and is therefore the payer."""
    if request.principal.partner_id is None and body.partner_id is None:
        raise invalid_field("partner_id", "is required", Code.INVALID_REQUEST)


async def _describe_top_up(request: GuardedRequest, body: FundFromPartner) -> Proposal:
    """Describe a top-up that an admin or an API key requests on the partner's behalf."""
    name, partner_id = body.partner_id, decode_id(ids.PARTNER, body.partner_id)
    # The ledger rejects an unknown partner, and before that an idempotency key that was used.
    with contextlib.suppress(ApiError):
        name = (await queries.get(request.services.database, partner_id)).name
    amount = to_minor_units(request, body.amount)
    return Proposal(
        operations=(Operation.WALLET_TRANSFER,),
        summary=f"Transfer {format_amount(request, amount)} from partner {name} to a customer",
        resource_id=body.subscriber_id or body.partner_id,
        amount=amount,
    )


@endpoints.post(
    "/api/v1/wallet/fund-from-partner",
    step_up=True,
    guard=Guard(_describe_top_up, Operation.WALLET_TRANSFER),
    access=Access(scope="payments:write", roles="AF", hmac="partner"),
    moves_money=True,
    requires=(_require_partner,),
    errors=(Code.PARTNER_NOT_FOUND, Code.OTP_REQUIRED, *_DECLINE_CODES),
    objects=ObjectAccess.PARTNER | ObjectAccess.UNRESTRICTED,
    notices=(Notice.MONEY_CORRECTED,),
)
async def fund_from_partner(request: GuardedRequest, body: FundFromPartner) -> Reply[TopUpReceipt]:
    """Fund a subscriber from a partner's account.

    Provide either `subscriber_id` or `card_serial`. `partner_id` is required unless the partner
    itself signs the request.

    An approval rule for `wallet_transfer` applies to requests by admins and API keys, but not to
    requests that the partner signs.

    A `partner_reference` identifies one of a partner's top-ups, whether by API request or by
    webhook. Repeating it with the same subscriber and amount returns the original response. With a
    different subscriber or amount, the request fails with `DUPLICATE_REFERENCE`.
    """
    idempotency_key = build_idempotency_key(request, body)
    partner_id = _get_paying_partner_id(request, body)
    await require_customer_access(request, body.subscriber_id, body.card_serial)
    return await _submit_top_up(
        request,
        partner_id,
        body.partner_reference,
        body.amount,
        build_customer_party(body),
        channel=get_channel(request.principal),
        idempotency_key=idempotency_key,
    )


@endpoints.post(
    "/api/v1/webhooks/partners/{partner_id}",
    access=Access(public=True),
    any_query="The partner chooses the URL of its webhook.",
    body_schema=WebhookTopUp,
    errors=(Code.UNAUTHORIZED, Code.CURRENCY_NOT_SUPPORTED, *_DECLINE_CODES),
    objects=ObjectAccess.PARTNER,
    effect="sets",
)
async def receive_partner_webhook(
    request: RequestContext, partner_id: str, body: bytes
) -> Reply[TopUpReceipt]:
    """Fund a subscriber through a partner's webhook.

    The `X-Webhook-Signature` header contains the hex-encoded HMAC-SHA-256 of the raw body with the
    partner's webhook secret, optionally prefixed with `sha256=`. Provide either `card_serial` or
    `phone_number`.

    A `reference` identifies one of the partner's top-ups. Repeating it with the same subscriber and
    amount returns the original response and moves no money. With a different subscriber or amount,
    the request fails with `DUPLICATE_REFERENCE`.
    """
    # The signature is verified before the body is parsed.
    payer_id = decode_id(ids.PARTNER, partner_id)
    await _require_valid_signature(request, payer_id, body)
    top_up: WebhookTopUp = _get_body_decoder(request.services.settings.currency).decode(body)
    return await _submit_top_up(
        request,
        payer_id,
        top_up.reference,
        top_up.amount,
        await _resolve_payee(request, top_up),
        channel=Channel.PARTNER,
    )


async def _submit_top_up(
    request: GuardedRequest,
    partner_id: int,
    reference: str,
    amount: str,
    payee: Party,
    *,
    channel: str,
    idempotency_key: ScopedIdempotencyKey | None = None,
) -> Reply[TopUpReceipt]:
    command = Command(
        type=chart.PARTNER_FUND,
        channel=channel,
        payer=commands.partner_party(partner_id),
        payee=payee,
        amount=to_minor_units(request, amount),
        idempotency_key=idempotency_key,
        reference=PartnerReference(partner_id, reference),
    )
    result = await submit_request(request, command)
    return result.build_reply(TopUpReceipt, "Wallet funded", new_balance=result.payee_balance)


async def _require_valid_signature(
    request: RequestContext, partner_id: int, raw_body: bytes
) -> None:
    """Require a valid webhook signature.

    An unknown partner and an invalid signature cost the same work and get the same response, so
    that partner ids cannot be probed.
    """
    services = request.services
    partner = await queries.get_webhook_source(services.database, partner_id)
    sealed_secrets = [] if partner is None else partner.get_valid_secrets(services.clock())
    is_valid = services.authenticator.webhook_secrets.is_valid_signature(
        partner_id, sealed_secrets, request.get_header(_SIGNATURE_HEADER.lower().encode()), raw_body
    )
    if partner is None or not is_valid:
        raise ApiError(
            Code.UNAUTHORIZED,
            f"The partner is unknown, or {_SIGNATURE_HEADER} is missing or invalid.",
        )
    if partner.is_suspended:
        raise ApiError(Code.PARTNER_SUSPENDED)


@cache
def _get_body_decoder(currency: str) -> BodyDecoder:
    return BodyDecoder(WebhookTopUp, currency)


async def _resolve_payee(request: RequestContext, body: WebhookTopUp) -> Party:
    if body.card_serial is not None:
        return commands.card_party(body.card_serial)
    assert body.phone_number is not None
    subscriber_id = await subscribers.find_id_by_phone(request.services.database, body.phone_number)
    return commands.subscriber_party(subscriber_id or 0)


def _get_paying_partner_id(request: GuardedRequest, body: FundFromPartner) -> int:
    own_id, requested_id = request.principal.partner_id, decode_id(ids.PARTNER, body.partner_id)
    if own_id is not None and body.partner_id is not None and requested_id != own_id:
        raise invalid_field("partner_id", "must match the partner that signed the request")
    return requested_id if own_id is None else own_id
