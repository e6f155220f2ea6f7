"""Operations on funding partners, which bring money into the platform."""

import msgspec

from tapgate_client.declaration import (
    M,
    OperationGroup,
    Transport,
    acts,
    lists,
    moves,
    operation,
    reads,
    sets,
)
from tapgate_client.encoding import Money, encode_amount
from tapgate_client.operation import Operation, build_operation
from tapgate_client.schemas.common import SigningKeyCreated
from tapgate_client.schemas.money_views import BalanceTotals
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.partners import (
    PartnerCreated,
    PartnerDepositReceipt,
    PartnerKeyRecord,
    PartnerRecord,
    PartnerResponse,
    PartnerWebhookSecret,
    TopUpReceipt,
)
from tapgate_client.webhooks import PARTNER_SIGNATURE_HEADER, sign_partner_webhook


class Partners(OperationGroup[M]):
    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.keys: PartnerKeys[M] = PartnerKeys(transport)

    @acts("POST /api/v1/admin/partners")
    def create(self, *, name: str, overdraft_limit: Money | None = None) -> PartnerCreated:
        """Create a partner. Only this response contains the HMAC and webhook secrets."""

    @lists("GET /api/v1/admin/partners")
    def list(
        self,
        *,
        status: str | None = None,
        search: str | None = None,
        order: str | None = None,
        limit: int | None = None,
    ) -> Page[PartnerRecord]:
        """List partners, newest first. `order` is `newest` or `name`."""

    @reads("GET /api/v1/admin/partners/totals")
    def get_totals(self, *, status: str | None = None, search: str | None = None) -> BalanceTotals:
        """Return the number and total balance of the partners in a list."""

    @reads("GET /api/v1/admin/partners/{id}")
    def get(self, id: str) -> PartnerRecord: ...

    @sets("PUT /api/v1/admin/partners/{id}")
    def update(
        self, id: str, *, name: str | None = None, overdraft_limit: Money | None = None
    ) -> PartnerRecord:
        """Update the given fields."""

    @moves("POST /api/v1/admin/partners/{id}/fund")
    def fund(
        self, id: str, *, amount: Money, currency: str | None = None, request_id: str | None = None
    ) -> PartnerDepositReceipt:
        """Credit a partner's clearing account with a deposit."""

    @acts("POST /api/v1/admin/partners/{id}/suspend")
    def suspend(self, id: str, *, reason: str | None = None) -> PartnerResponse: ...

    @acts("POST /api/v1/admin/partners/{id}/activate")
    def activate(self, id: str, *, reason: str | None = None) -> PartnerResponse: ...

    @acts("POST /api/v1/admin/partners/{id}/rotate-webhook-secret")
    def rotate_webhook_secret(
        self, id: str, *, grace_seconds: int | None = None
    ) -> PartnerWebhookSecret:
        """Replace the webhook secret. The old secret remains valid for `grace_seconds`."""

    @operation
    def send_webhook(
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


class PartnerKeys(OperationGroup[M]):
    @acts("POST /api/v1/admin/partners/{id}/keys")
    def create(self, id: str) -> SigningKeyCreated:
        """Create an additional signing key. Only this response contains its secret."""

    @lists("GET /api/v1/admin/partners/{id}/keys")
    def list(self, id: str, *, limit: int | None = None) -> Page[PartnerKeyRecord]: ...

    @sets("DELETE /api/v1/admin/partners/{id}/keys/{api_key_id}")
    def delete(self, id: str, api_key_id: str) -> None: ...
