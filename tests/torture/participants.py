"""Participants in the plan with their ids and credentials, and the requests they send."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final, NamedTuple

import msgspec

from drivers.actors import AGENT_PIN, Record
from harness import PIN, WRONG_PIN
from tapgate_client import signing
from tapgate_client.clock import format_rfc3339, system_clock
from tapgate_client.money import format_decimal
from tapgate_sandbox.software_card import SoftwareCard
from torture.plan import Kind, Operation


class HmacKey(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    secret: bytes


class StaffRequest(NamedTuple):
    """Request of an admin."""

    method: str
    path: str
    body: Record | None = None
    content: bytes | None = None  # CSV
    by_approver: bool = False


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
    maker_token: str = ""  # of the admin who funds agents, corrects and pays out
    maker_email: str = ""
    approver_token: str = ""
    first_day: date = date.min
    clock_offset: timedelta = timedelta()  # of the gateway

    def build_request(
        self,
        operation: Operation,
        original: str = "",
        proof: Record | None = None,
        *,
        altered: bool = False,
    ) -> bytes:
        """Build a signed request for an operation.

        `original` is the transaction or payout that it refers to. An altered request has the same
        idempotency key and a different amount. An in-app payment names its card by the proof.
        """
        amount = operation.amount
        if altered:
            amount = 1 if amount is None else amount + 1
        text = None if amount is None else format_decimal(amount, "SLE")
        path, body = _BUILDERS[operation.kind](self, operation, text, original)
        if proof is not None:
            body["card_proof"] = proof
            if operation.kind == "in_app":
                del body["card_serial"]
        entered = {name: value for name, value in body.items() if value is not None}
        raw = msgspec.json.encode(entered) if entered else b""
        return _encode_http("POST", path, self._build_credential_headers(operation, path, raw), raw)

    def build_staff_request(self, request: StaffRequest) -> bytes:
        token = self.approver_token if request.by_approver else self.maker_token
        credential = f"Authorization: Bearer {token}\r\n"
        if request.content is not None:
            return _encode_http(
                request.method, request.path, credential, request.content, "text/csv"
            )
        raw = b"" if request.body is None else msgspec.json.encode(request.body)
        return _encode_http(request.method, request.path, credential, raw)

    def build_read_request(self, path: str) -> bytes:
        return _encode_http("GET", path, f"Authorization: Bearer {self.api_key}\r\n", b"")

    def _build_credential_headers(self, operation: Operation, path: str, raw: bytes) -> str:
        if operation.kind == "top_up":
            return f"X-Webhook-Signature: {signing.webhook_signature(self.webhook_secret, raw)}\r\n"
        if operation.kind in _STAFF_BUILDERS:
            return f"Authorization: Bearer {self.maker_token}\r\n"
        if operation.kind in ("p2p", "cash_in", "cash_out"):
            return f"Authorization: Bearer {self.api_key}\r\n"
        merchant = operation.payer if operation.kind == "refund" else operation.payee
        key = (self.server_keys if operation.kind == "in_app" else self.terminal_keys)[merchant]
        timestamp = format_rfc3339(system_clock() + self.clock_offset)
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


def build_funding(participants: Participants, operation: Operation) -> StaffRequest:
    assert operation.amount is not None
    path = f"/api/v1/agents/{participants.ids[operation.payee]}/fund"
    amount = format_decimal(operation.amount, "SLE")
    return StaffRequest("POST", path, {"request_id": operation.idempotency_key, "amount": amount})


def _build_reversal(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    return f"/api/v1/transactions/{original}/reverse", {
        "request_id": operation.idempotency_key,
        "amount": amount,
        "reason": "sent twice",
    }


def _build_payout(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    return "/api/v1/payouts", {
        "request_id": operation.idempotency_key,
        "owner_id": participants.ids[operation.payer],
        "amount": amount,
    }


def _build_payout_cancel(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    return f"/api/v1/payouts/{original}/cancel", {"request_id": operation.idempotency_key}


def _build_payout_return(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    return f"/api/v1/payouts/{original}/returned", {
        "request_id": operation.idempotency_key,
        "reason": "account closed",
    }


def _build_day_close(
    participants: Participants, operation: Operation, amount: str | None, original: str
) -> tuple[str, Record]:
    day = participants.first_day + timedelta(days=operation.day)
    return f"/api/v1/ledger/days/{day}/close", {}


_Builder = Callable[[Participants, Operation, str | None, str], tuple[str, Record]]
#: Operations of staff that need one request.
_STAFF_BUILDERS: Final[dict[Kind, _Builder]] = {
    "reversal": _build_reversal,
    "payout": _build_payout,
    "payout_cancel": _build_payout_cancel,
    "payout_returned": _build_payout_return,
    "day_close": _build_day_close,
}
_BUILDERS: Final[dict[Kind, _Builder]] = {
    "pos": _build_payment,
    "pos_pin": _build_payment,
    "in_app": _build_payment,
    "p2p": _build_p2p,
    "cash_in": _build_cash_in,
    "cash_out": _build_cash_out,
    "top_up": _build_top_up,
    "refund": _build_refund,
    **_STAFF_BUILDERS,
}


def _encode_http(
    method: str, path: str, credential: str, body: bytes, media_type: str = "application/json"
) -> bytes:
    length = f"Content-Type: {media_type}\r\nContent-Length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{credential}{length}\r\n"
    return head.encode() + body
