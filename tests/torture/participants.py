"""Participants in the plan with their ids and credentials, and the requests they send."""

from collections.abc import Callable
from typing import Final

import msgspec

from drivers.actors import AGENT_PIN, Record
from harness import PIN, WRONG_PIN
from tapgate_client import signing
from tapgate_client.clock import format_rfc3339, system_clock
from tapgate_sandbox.software_card import SoftwareCard
from torture.plan import Kind, Operation


class HmacKey(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    secret: bytes


class Participants(msgspec.Struct, kw_only=True):
    """Ids and credentials of all participants."""

    ids: dict[str, str] = {}  # customers, merchants, agents and the bank
    cards: dict[str, str] = {}
    phones: dict[str, str] = {}
    terminal_keys: dict[str, HmacKey] = {}
    server_keys: dict[str, HmacKey] = {}
    chips: dict[str, SoftwareCard] = {}  # of cards that sign their taps
    webhook_secret: bytes = b""
    api_key: str = ""
    maker_token: str = ""  # of the admin who funds agents
    approver_token: str = ""

    def build_request(
        self,
        operation: Operation,
        original: str = "",
        proof: Record | None = None,
        *,
        altered: bool = False,
    ) -> bytes:
        """Build a signed request for an operation.

        `original` is the transaction that a refund refers to. An altered request has the same
        idempotency key and a different amount. An in-app payment names its card by the proof.
        """
        amount = operation.amount
        if altered:
            amount = 1 if amount is None else amount + 1
        text = None if amount is None else f"{amount // 100}.{amount % 100:02d}"
        path, body = _BUILDERS[operation.kind](self, operation, text, original)
        if proof is not None:
            body["card_proof"] = proof
            if operation.kind == "in_app":
                del body["card_serial"]
        entered = {name: value for name, value in body.items() if value is not None}
        raw = msgspec.json.encode(entered)
        return _encode_http("POST", path, self._build_credential_headers(operation, path, raw), raw)

    def build_approval_request(self, approval_id: str, *, is_approved: bool) -> bytes:
        """Build a request's approval or, once it is approved, a request for its outcome."""
        method, suffix = ("GET", "") if is_approved else ("POST", "/approve")
        credential = f"Authorization: Bearer {self.approver_token}\r\n"
        return _encode_http(method, f"/api/v1/approvals/{approval_id}{suffix}", credential, b"")

    def build_read_request(self, path: str) -> bytes:
        return _encode_http("GET", path, f"Authorization: Bearer {self.api_key}\r\n", b"")

    def _build_credential_headers(self, operation: Operation, path: str, raw: bytes) -> str:
        if operation.kind == "top_up":
            return f"X-Webhook-Signature: {signing.webhook_signature(self.webhook_secret, raw)}\r\n"
        if operation.kind == "fund":
            return f"Authorization: Bearer {self.maker_token}\r\n"
        if operation.kind in ("p2p", "cash_in", "cash_out"):
            return f"Authorization: Bearer {self.api_key}\r\n"
        merchant = operation.payer if operation.kind == "refund" else operation.payee
        key = (self.server_keys if operation.kind == "in_app" else self.terminal_keys)[merchant]
        timestamp = format_rfc3339(system_clock())
        signature = signing.sign(key.secret, "POST", path, timestamp, raw)
        return f"X-API-Key-ID: {key.id}\r\nX-Timestamp: {timestamp}\r\nX-Signature: {signature}\r\n"


def _build_payment(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    path = "/api/v1/payment" if operation.kind == "in_app" else "/api/v1/pos/payment"
    pin = (WRONG_PIN if operation.wrong_pin else PIN) if operation.kind == "pos_pin" else None
    card = participants.cards[operation.payer]
    return path, {
        "request_id": operation.idempotency_key,
        "card_serial": card,
        "amount": amount,
        "pin": pin,
    }


def _build_p2p(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    return "/api/v1/wallet/transfer-p2p", {
        "request_id": operation.idempotency_key,
        "sender_id": participants.ids[operation.payer],
        "recipient_card_serial": participants.cards[operation.payee],
        "amount": amount,
        "pin": PIN,
    }


def _build_cash_in(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    return "/api/v1/agents/cashin", {
        "request_id": operation.idempotency_key,
        "agent_id": participants.ids[operation.payer],
        "subscriber_id": participants.ids[operation.payee],
        "amount": amount,
        "agent_pin": AGENT_PIN,
    }


def _build_cash_out(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    return "/api/v1/agents/cashout", {
        "request_id": operation.idempotency_key,
        "agent_id": participants.ids[operation.payee],
        "subscriber_id": participants.ids[operation.payer],
        "amount": amount,
        "agent_pin": AGENT_PIN,
        "pin": PIN,
    }


def _build_top_up(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    return f"/api/v1/webhooks/partners/{participants.ids[operation.payer]}", {
        "reference": operation.idempotency_key,
        "phone_number": participants.phones[operation.payee],
        "amount": amount,
    }


def _build_refund(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    return "/api/v1/pos/refund", {
        "request_id": operation.idempotency_key,
        "original_transaction_id": original,
        "amount": amount,
        "reason": "goods returned",
    }


def _build_funding(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    return f"/api/v1/agents/{participants.ids[operation.payee]}/fund", {
        "request_id": operation.idempotency_key,
        "amount": amount,
    }


_BUILDERS: Final[
    dict[Kind, Callable[[Participants, Operation, str | None, str], tuple[str, Record]]]
] = {
    "pos": _build_payment,
    "pos_pin": _build_payment,
    "in_app": _build_payment,
    "p2p": _build_p2p,
    "cash_in": _build_cash_in,
    "cash_out": _build_cash_out,
    "top_up": _build_top_up,
    "refund": _build_refund,
    "fund": _build_funding,
}


def _encode_http(method: str, path: str, credential: str, body: bytes) -> bytes:
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{credential}{length}\r\n"
    return head.encode() + body
