"""Requests as bytes, signed in advance so that the load client only sends them."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec

from bench.payments.dataset import Card, Dataset, SigningKey
from tapgate_client import signing
from tapgate_client.clock import format_rfc3339, system_clock

PAYMENT_PATH = "/api/v1/pos/payment"
LOOKUP_PATH = "/api/v1/pos/lookup-card"
TRANSFER_PATH = "/api/v1/wallet/transfer-p2p"
_LIST_PATH = "/api/v1/transactions"
_STATEMENT_PATH = "/api/v1/wallet/account-statement"

#: Above the limit for payments without a PIN, below all other limits.
_PAYMENT_AMOUNT = "525.00"
_AMOUNT_WITHOUT_PIN = "1.00"
_TRANSFER_AMOUNT = "25.00"


def build_payment(card: Card, key: SigningKey, timestamp: str, *, with_pin: bool = True) -> bytes:
    """Build a payment, with a new tap if the card signs its taps."""
    body: dict[str, Any] = {
        "request_id": str(uuid4()),
        "card_serial": card.serial,
        "amount": _PAYMENT_AMOUNT if with_pin else _AMOUNT_WITHOUT_PIN,
        "merchant_name": "Kamara Stores",
        "transaction_ref": "ORDER-1188",
    }
    if with_pin:
        body["pin"] = card.pin
    if card.chip is not None:
        body["card_proof"] = card.chip.tap()
    return build_signed_payment(msgspec.json.encode(body), key, timestamp)


def build_lookups(dataset: Dataset) -> list[bytes]:
    """Build a lookup for every card that signs its taps, by card proof."""
    timestamp, key = get_timestamp(), dataset.terminals[0]
    return [
        _build_signed(
            LOOKUP_PATH, msgspec.json.encode({"card_proof": card.chip.tap()}), key, timestamp
        )
        for card in dataset.signing_cards
        if card.chip is not None
    ]


def build_signed_payment(body: bytes, key: SigningKey, timestamp: str) -> bytes:
    return _build_signed(PAYMENT_PATH, body, key, timestamp)


def _build_signed(path: str, body: bytes, key: SigningKey, timestamp: str) -> bytes:
    signature = signing.sign(key.secret, "POST", path, timestamp, body)
    return build_request(
        "POST",
        path,
        f"X-API-Key-ID: {key.id}\r\nX-Timestamp: {timestamp}\r\nX-Signature: {signature}\r\n",
        body,
    )


def build_transfer(sender: Card, receiver: Card, api_key: str) -> bytes:
    body = msgspec.json.encode(
        {
            "request_id": str(uuid4()),
            "sender_id": sender.subscriber_id,
            "recipient_card_serial": receiver.serial,
            "amount": _TRANSFER_AMOUNT,
            "pin": sender.pin,
        }
    )
    return build_request("POST", TRANSFER_PATH, build_bearer_header(api_key), body)


def build_balance_read(card: Card, api_key: str) -> bytes:
    return build_request(
        "GET", f"/api/v1/balance/{card.subscriber_id}", build_bearer_header(api_key), b""
    )


def build_list_read(dataset: Dataset) -> bytes:
    path = f"{_LIST_PATH}?user_id={dataset.busy_card.subscriber_id}&limit=50"
    return build_request("GET", path, build_bearer_header(dataset.api_key), b"")


def build_statement_read(dataset: Dataset) -> bytes:
    today = system_clock().date()
    period = {"from_date": str(today - timedelta(days=30)), "to_date": str(today)}
    body = msgspec.json.encode({"subscriber_id": dataset.busy_card.subscriber_id, **period})
    return build_request("POST", _STATEMENT_PATH, build_bearer_header(dataset.api_key), body)


def get_timestamp() -> str:
    return format_rfc3339(system_clock())


def build_bearer_header(api_key: str) -> str:
    return f"Authorization: Bearer {api_key}\r\n"


def build_request(method: str, path: str, credential: str, body: bytes) -> bytes:
    body_headers = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{credential}"
        f"{body_headers if body else ''}\r\n"
    )
    return head.encode() + body
