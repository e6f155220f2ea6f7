"""Top-up endpoints for partners."""

from tapgate.api.endpoint import Access, Endpoints, Reply
from tapgate.api.request_context import RequestContext
from tapgate.errors import Code
from tapgate.partners.top_ups import operations
from tapgate.schemas.partners import FundFromPartner, TopUpReceipt, WebhookTopUp

endpoints = Endpoints("Partners")

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


@endpoints.post(
    "/api/v1/wallet/fund-from-partner",
    access=Access(scope="payments:write", roles="AF", hmac="partner"),
    moves_money=True,
    requires=(operations.require_partner,),
    errors=(Code.PARTNER_NOT_FOUND, Code.OTP_REQUIRED, *_DECLINE_CODES),
)
async def fund_from_partner(request: RequestContext, body: FundFromPartner) -> Reply[TopUpReceipt]:
    """Fund a subscriber from a partner's account.

    Provide either `subscriber_id` or `card_serial`. `partner_id` is required unless the partner
    itself signs the request.

    A `partner_reference` identifies one top-up of a partner, whether by API request or by webhook.
    Repeating it with the same subscriber and amount returns the original response. With a different
    subscriber or amount, the request fails with `DUPLICATE_REFERENCE`.
    """
    return await operations.fund_by_request(request, body)


@endpoints.post(
    "/api/v1/webhooks/partners/{partner_id}",
    access=Access(public=True),
    body_schema=WebhookTopUp,
    errors=(Code.UNAUTHORIZED, Code.CURRENCY_NOT_SUPPORTED, *_DECLINE_CODES),
)
async def receive_partner_webhook(
    request: RequestContext, partner_id: str, body: bytes
) -> Reply[TopUpReceipt]:
    """Fund a subscriber through a partner's webhook.

    The `X-Webhook-Signature` header contains the hex-encoded HMAC-SHA-256 of the raw body with the
    partner's webhook secret, optionally prefixed with `sha256=`. Provide either `card_serial` or
    `phone_number`.

    A `reference` identifies one top-up of the partner. Repeating it with the same subscriber and
    amount returns the original response and moves no money. With a different subscriber or amount,
    the request fails with `DUPLICATE_REFERENCE`.
    """
    return await operations.fund_by_webhook(request, partner_id, body)
