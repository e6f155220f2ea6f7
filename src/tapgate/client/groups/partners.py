"""Funding partners: who brings money in from outside."""

import msgspec

from tapgate.client import webhooks
from tapgate.client.operation import (
    Group,
    Line,
    Listing,
    M,
    Operation,
    act,
    delete,
    described,
    move,
    operation,
    read,
)
from tapgate.client.pages import listed, listing
from tapgate.client.records.partners import (
    Partner,
    PartnerCreated,
    PartnerDepositReceipt,
    PartnerKey,
    PartnerMoved,
    PartnerWebhookSecret,
)
from tapgate.client.records.processors import SigningKeyCreated
from tapgate.client.records.wallet import TopUpReceipt
from tapgate.client.values import Money, given, money, money_or_none

_ALL = "/api/v1/admin/partners"
_ONE = f"{_ALL}/{{id}}"
_KEYS = f"{_ONE}/keys"


class Partners(Group[M]):
    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self.keys: PartnerKeys[M] = PartnerKeys(line)

    @operation
    def create(
        self, *, name: str, overdraft_limit: Money | None = None
    ) -> Operation[PartnerCreated]:
        """The answer has the signing key and the webhook secret, both shown this once."""
        body = given(name=name, overdraft_limit=money_or_none(overdraft_limit))
        return act(_ALL, PartnerCreated, body)

    @listing
    def list(
        self, *, status: str | None = None, search: str | None = None, limit: int | None = None
    ) -> Listing[Partner]:
        return listed(_ALL, Partner, given(status=status, search=search, limit=limit))

    @operation
    def get(self, id: str) -> Operation[Partner]:
        return read(_ONE, Partner, id=id)

    @operation
    def fund(
        self,
        id: str,
        *,
        amount: Money,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[PartnerDepositReceipt]:
        """What the partner deposited."""
        body = given(amount=money(amount), currency=currency)
        return move(f"{_ONE}/fund", PartnerDepositReceipt, request_id, body, id=id)

    @operation
    def suspend(self, id: str, *, reason: str | None = None) -> Operation[PartnerMoved]:
        return act(f"{_ONE}/suspend", PartnerMoved, given(reason=reason), id=id)

    @operation
    def activate(self, id: str, *, reason: str | None = None) -> Operation[PartnerMoved]:
        return act(f"{_ONE}/activate", PartnerMoved, given(reason=reason), id=id)

    @operation
    def rotate_webhook_secret(
        self, id: str, *, grace_seconds: int | None = None
    ) -> Operation[PartnerWebhookSecret]:
        """Replace the webhook secret; the old one verifies until the grace period ends."""
        body = given(grace_seconds=grace_seconds)
        return act(f"{_ONE}/rotate-webhook-secret", PartnerWebhookSecret, body, id=id)

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
        """As the partner: tell of a top-up. The same `reference` again pays nothing more."""
        body = given(
            reference=reference,
            amount=money(amount),
            card_serial=card_serial,
            phone_number=phone_number,
            currency=currency,
        )
        content = msgspec.json.encode(body)
        signature = webhooks.partner_signature(webhook_secret, content)
        return described(
            "sets",
            "POST",
            "/api/v1/webhooks/partners/{partner_id}",
            TopUpReceipt,
            path={"partner_id": partner_id},
            content=content,
            headers={webhooks.PARTNER_HEADER: signature},
            public=True,
        )


class PartnerKeys(Group[M]):
    @operation
    def create(self, id: str) -> Operation[SigningKeyCreated]:
        """Create a further signing key; its secret is in this response only."""
        return act(_KEYS, SigningKeyCreated, id=id)

    @listing
    def list(self, id: str, *, limit: int | None = None) -> Listing[PartnerKey]:
        return listed(_KEYS, PartnerKey, given(limit=limit), id=id)

    @operation
    def delete(self, id: str, api_key_id: str) -> Operation[None]:
        return delete(f"{_KEYS}/{{api_key_id}}", id=id, api_key_id=api_key_id)
