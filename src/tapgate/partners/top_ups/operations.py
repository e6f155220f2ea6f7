"""Top-ups of subscribers by partners, through a signed webhook or an API request."""

from functools import cache

from tapgate import ids
from tapgate.api.endpoint import Reply
from tapgate.api.request_context import RequestContext
from tapgate.errors import ApiError, Code, invalid_field
from tapgate.http.decoding import BodyDecoder
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, PartnerReference, Party, ScopedIdempotencyKey
from tapgate.partners.top_ups import queries
from tapgate.schemas.partners import FundFromPartner, TopUpReceipt, WebhookTopUp
from tapgate.schemas.transactions import Channel
from tapgate.transactions.customers import build_customer_party, require_customer_access
from tapgate.transactions.money_requests import (
    build_idempotency_key,
    submit_request,
    to_minor_units,
)
from tapgate.transactions.submit import decode_id, get_channel

_SIGNATURE_HEADER = "X-Webhook-Signature"


async def fund_by_webhook(
    request: RequestContext, partner: str, raw_body: bytes
) -> Reply[TopUpReceipt]:
    """Fund a subscriber by webhook. The signature is verified before the body is parsed."""
    partner_id = decode_id(ids.PARTNER, partner)
    await _require_valid_signature(request, partner_id, raw_body)
    body: WebhookTopUp = _get_body_decoder(request.services.settings.currency).decode(raw_body)
    return await _submit_top_up(
        request,
        partner_id,
        body.reference,
        body.amount,
        await _resolve_payee(request, body),
        channel=Channel.PARTNER,
    )


async def fund_by_request(request: RequestContext, body: FundFromPartner) -> Reply[TopUpReceipt]:
    idempotency_key = build_idempotency_key(request, body)
    partner_id = _get_paying_partner_id(request, body)
    await require_customer_access(
        request.services.database,
        request.caller,
        request.services.clock(),
        body.subscriber_id,
        body.card_serial,
    )
    return await _submit_top_up(
        request,
        partner_id,
        body.partner_reference,
        body.amount,
        build_customer_party(body),
        channel=get_channel(request.principal),
        idempotency_key=idempotency_key,
    )


async def _submit_top_up(
    request: RequestContext,
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
    subscriber_id = await queries.find_subscriber_by_phone(
        request.services.database, body.phone_number
    )
    return commands.subscriber_party(subscriber_id or 0)


def require_partner(request: RequestContext, body: FundFromPartner) -> None:
    """Require `partner_id`, unless a partner signed the request and is therefore the payer."""
    if request.principal.partner_id is None and body.partner_id is None:
        raise ApiError(
            Code.INVALID_REQUEST,
            "partner_id is required",
            details={"fields": {"partner_id": "is required"}},
        )


def _get_paying_partner_id(request: RequestContext, body: FundFromPartner) -> int:
    own_id, requested_id = request.principal.partner_id, decode_id(ids.PARTNER, body.partner_id)
    if own_id is not None and body.partner_id is not None and requested_id != own_id:
        raise invalid_field("partner_id", "must match the partner that signed the request")
    return requested_id if own_id is None else own_id
