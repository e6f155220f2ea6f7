"""Webhooks that a funding partner sends, signed with the partner's webhook secret."""

import msgspec

from tapgate_client.declaration import M, OperationGroup, operation
from tapgate_client.encoding import Money, encode_amount
from tapgate_client.operation import Operation, build_operation
from tapgate_client.schemas.partners import TopUpReceipt
from tapgate_client.webhooks import PARTNER_SIGNATURE_HEADER, sign_partner_webhook


class PartnerWebhooks(OperationGroup[M]):
    """Top-ups by webhook. Not generated, because the signature covers the encoded body."""

    @operation
    def send(
        self,
        partner_id: str,
        webhook_secret: str,
        *,
        reference: str,
        amount: Money,
        card_serial: str | None = None,
        phone_number: str | None = None,
        currency: str | None = None,
    ) -> Operation[TopUpReceipt]:
        """Send a top-up webhook as the partner.

        A repeated webhook with the same `reference` returns the original response and moves no
        money.
        """
        fields = {
            "reference": reference,
            "amount": encode_amount(amount),
            "card_serial": card_serial,
            "phone_number": phone_number,
            "currency": currency,
        }
        body = msgspec.json.encode(
            {name: value for name, value in fields.items() if value is not None}
        )
        return build_operation(
            "sets",
            "POST /api/v1/webhooks/partners/{partner_id}",
            TopUpReceipt,
            path={"partner_id": partner_id},
            body=body,
            headers={PARTNER_SIGNATURE_HEADER: sign_partner_webhook(webhook_secret, body)},
            public=True,
        )
