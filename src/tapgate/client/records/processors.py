"""Processor, terminal and signing key records."""

from tapgate.client.records.base import Confirmation, Receipt, Record, SecretRecord


class Processor(Record, frozen=True, kw_only=True):
    """A merchant, or a payment processor acting for merchants."""

    id: str
    name: str
    phone_number: str
    email: str
    status: str
    suspend_reason: str | None
    account_id: str
    balance: str
    currency: str
    created_at: str
    updated_at: str


class CreateProcessorResponse(Confirmation, SecretRecord, frozen=True, kw_only=True):
    processor_id: str
    processor: Processor
    api_key_id: str
    hmac_secret: str


class ProcessorResponse(Confirmation, frozen=True, kw_only=True):
    """Response to suspending or activating a processor."""

    processor: Processor


class ProcessorTransferReceipt(Receipt, frozen=True, kw_only=True):
    amount: str
    processor_balance: str


class Terminal(Record, frozen=True, kw_only=True):
    id: str
    processor_id: str
    name: str
    status: str
    api_key_id: str | None
    last_seen_at: str | None
    created_at: str


class CreateTerminalResponse(SecretRecord, frozen=True, kw_only=True):
    terminal: Terminal
    api_key_id: str
    hmac_secret: str


class TerminalResponse(Confirmation, frozen=True, kw_only=True):
    """Response to blocking or unblocking a terminal."""

    terminal: Terminal


class SigningKeyWithSecret(SecretRecord, frozen=True, kw_only=True):
    api_key_id: str
    hmac_secret: str


class SigningKey(Record, frozen=True, kw_only=True):
    api_key_id: str
    terminal_id: str | None
    created_at: str
