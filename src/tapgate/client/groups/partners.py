"""Operations on funding partners, which bring money into the platform."""

import msgspec

from tapgate.client import webhooks
from tapgate.client.encoding import Money, encode_amount, encode_optional_amount, omit_none
from tapgate.client.operation import (
    ListOperation,
    M,
    Operation,
    OperationGroup,
    Transport,
    build_delete,
    build_get,
    build_idempotent_post,
    build_operation,
    build_post,
    operation,
)
from tapgate.client.pagination import build_list, list_operation
from tapgate.client.records.partners import (
    CreatePartnerResponse,
    Partner,
    PartnerDepositReceipt,
    PartnerResponse,
    PartnerSigningKey,
    PartnerWebhookSecret,
)
from tapgate.client.records.processors import SigningKeyWithSecret
from tapgate.client.records.wallet import TopUpReceipt

_COLLECTION_PATH = "/api/v1/admin/partners"
_RESOURCE_PATH = f"{_COLLECTION_PATH}/{{id}}"
_KEYS_PATH = f"{_RESOURCE_PATH}/keys"


class Partners(OperationGroup[M]):
    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.keys: PartnerKeys[M] = PartnerKeys(transport)

    @operation
    def create(
        self, *, name: str, overdraft_limit: Money | None = None
    ) -> Operation[CreatePartnerResponse]:
        """Create a partner. Only this response contains the HMAC and webhook secrets."""
        body = omit_none(name=name, overdraft_limit=encode_optional_amount(overdraft_limit))
        return build_post(_COLLECTION_PATH, CreatePartnerResponse, body)

    @list_operation
    def list(
        self, *, status: str | None = None, search: str | None = None, limit: int | None = None
    ) -> ListOperation[Partner]:
        return build_list(
            _COLLECTION_PATH, Partner, omit_none(status=status, search=search, limit=limit)
        )

    @operation
    def get(self, id: str) -> Operation[Partner]:
        return build_get(_RESOURCE_PATH, Partner, id=id)

    @operation
    def fund(
        self,
        id: str,
        *,
        amount: Money,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[PartnerDepositReceipt]:
        """Credit a partner's clearing account with a deposit."""
        body = omit_none(amount=encode_amount(amount), currency=currency)
        return build_idempotent_post(
            f"{_RESOURCE_PATH}/fund", PartnerDepositReceipt, request_id, body, id=id
        )

    @operation
    def suspend(self, id: str, *, reason: str | None = None) -> Operation[PartnerResponse]:
        return build_post(
            f"{_RESOURCE_PATH}/suspend", PartnerResponse, omit_none(reason=reason), id=id
        )

    @operation
    def activate(self, id: str, *, reason: str | None = None) -> Operation[PartnerResponse]:
        return build_post(
            f"{_RESOURCE_PATH}/activate", PartnerResponse, omit_none(reason=reason), id=id
        )

    @operation
    def rotate_webhook_secret(
        self, id: str, *, grace_seconds: int | None = None
    ) -> Operation[PartnerWebhookSecret]:
        """Replace the webhook secret. The old secret remains valid for `grace_seconds`."""
        body = omit_none(grace_seconds=grace_seconds)
        return build_post(
            f"{_RESOURCE_PATH}/rotate-webhook-secret", PartnerWebhookSecret, body, id=id
        )

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
        body = omit_none(
            reference=reference,
            amount=encode_amount(amount),
            card_serial=card_serial,
            phone_number=phone_number,
            currency=currency,
        )
        content = msgspec.json.encode(body)
        signature = webhooks.sign_partner_webhook(webhook_secret, content)
        return build_operation(
            "sets",
            "POST",
            "/api/v1/webhooks/partners/{partner_id}",
            TopUpReceipt,
            path={"partner_id": partner_id},
            content=content,
            headers={webhooks.PARTNER_SIGNATURE_HEADER: signature},
            public=True,
        )


class PartnerKeys(OperationGroup[M]):
    @operation
    def create(self, id: str) -> Operation[SigningKeyWithSecret]:
        """Create an additional signing key. Only this response contains its secret."""
        return build_post(_KEYS_PATH, SigningKeyWithSecret, id=id)

    @list_operation
    def list(self, id: str, *, limit: int | None = None) -> ListOperation[PartnerSigningKey]:
        return build_list(_KEYS_PATH, PartnerSigningKey, omit_none(limit=limit), id=id)

    @operation
    def delete(self, id: str, api_key_id: str) -> Operation[None]:
        return build_delete(f"{_KEYS_PATH}/{{api_key_id}}", id=id, api_key_id=api_key_id)
