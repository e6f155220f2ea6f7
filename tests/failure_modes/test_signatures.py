"""Signatures over the raw bytes of a request and, except for webhooks, its timestamp."""

import json
from typing import Any

import pytest

from drivers.pos import PAY_URL, VERIFY_URL, PosDriver, new_request_id
from harness import PIN, WRONG_PIN, Harness, HmacAuth, parse_error
from tapgate import signing
from tapgate.clock import format_rfc3339, system_clock


def _encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _sign_headers(
    auth: HmacAuth, body: bytes, path: str, timestamp: str | None = None
) -> dict[str, str]:
    signed_timestamp = format_rfc3339(system_clock()) if timestamp is None else timestamp
    partner_header = {} if auth.partner_id is None else {"X-Partner-ID": auth.partner_id}
    return {
        "X-API-Key-ID": auth.id,
        "X-Timestamp": signed_timestamp,
        "X-Signature": signing.sign(auth.secret.encode(), "POST", path, signed_timestamp, body),
        **partner_header,
    }


@pytest.fixture
async def merchant(harness: Harness) -> PosDriver:
    return await PosDriver.create(harness)


async def test_duplicate_json_key_is_validated_and_executed_with_the_same_value(
    merchant: PosDriver,
) -> None:
    """If parsers disagreed on duplicate keys, limits could be checked on the wrong amount."""
    request_id, harness = new_request_id(), merchant.harness
    body = (
        f'{{"request_id": "{request_id}", "card_serial": "{merchant.card}", "pin": "{WRONG_PIN}",'
        f'"amount": "1", "amount": "700", "pin": "{PIN}"}}'
    ).encode()
    response = await harness.client.post(
        PAY_URL, content=body, headers=_sign_headers(merchant.merchant_auth, body, PAY_URL)
    )
    assert (response.status_code, response.json()["amount"]) == (200, "700.00 SLE")
    assert await merchant.get_balance() == 300_00
    # The idempotency check also uses the last amount: 700 is a replay, 1 is a conflict.
    replayed = await merchant.pay("700", request_id=request_id, pin=PIN)
    assert replayed.headers["Idempotent-Replayed"] == "true"
    other = await merchant.pay("1", request_id=request_id, pin=PIN)
    assert parse_error(other) == (409, "DUPLICATE_REQUEST")
    # The last amount exceeds the limit for payments without a PIN.
    body_without_pin = body.replace(f'"pin": "{PIN}"'.encode(), b'"pin": null').replace(
        b"700", b"501"
    )
    body_without_pin = body_without_pin.replace(request_id.encode(), new_request_id().encode())
    response = await harness.client.post(
        PAY_URL,
        content=body_without_pin,
        headers=_sign_headers(merchant.merchant_auth, body_without_pin, PAY_URL),
    )
    assert parse_error(response) == (403, "PIN_REQUIRED")


async def test_replay_attack_with_a_recorded_pin_check_counts_as_failed_attempts(
    merchant: PosDriver,
) -> None:
    """A PIN check has no idempotency key, so each resent request must count as an attempt."""
    harness = merchant.harness
    raw = _encode_json({"card_serial": merchant.card, "pin": WRONG_PIN})
    headers = _sign_headers(merchant.merchant_auth, raw, VERIFY_URL)
    responses = [
        await harness.client.post(VERIFY_URL, content=raw, headers=headers) for _ in range(4)
    ]
    assert [parse_error(response) for response in responses] == [
        (400, "INVALID_PIN"),
        (400, "INVALID_PIN"),
        (400, "INVALID_PIN"),
        (403, "ACCOUNT_LOCKED"),
    ]
