"""Funding partner records."""

from tapgate.client.records.base import Confirmation, Receipt, Record, SecretRecord


class Partner(Record, frozen=True, kw_only=True):
    id: str
    name: str
    status: str
    account_id: str
    balance: str
    overdraft_limit: str
    currency: str
    created_at: str


class CreatePartnerResponse(SecretRecord, frozen=True, kw_only=True):
    partner: Partner
    api_key_id: str
    hmac_secret: str
    webhook_secret: str


class PartnerSigningKey(Record, frozen=True, kw_only=True):
    api_key_id: str
    created_at: str


class PartnerWebhookSecret(SecretRecord, frozen=True, kw_only=True):
    webhook_secret: str


class PartnerResponse(Confirmation, frozen=True, kw_only=True):
    """Response to suspending or activating a partner."""

    partner: Partner


class PartnerDepositReceipt(Receipt, frozen=True, kw_only=True):
    amount: str
    new_balance: str
