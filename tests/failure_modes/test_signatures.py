"""Signatures over a request's raw bytes and, except for webhooks, its timestamp."""

import json
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from builders.participants import (
    FUND_URL,
    create_partner,
    get_partner_auth,
    get_wallet_balance,
    post_webhook,
)
from builders.payments import PAY_URL, VERIFY_URL, PosDriver, new_request_id
from harness import PIN, WRONG_PIN, Harness, HmacAuth, parse_error
from tapgate_client import signing
from tapgate_client.clock import format_rfc3339, system_clock

UNAUTHORIZED = (401, "UNAUTHORIZED")

#: Changes that an intermediary may make to a body. Most of them keep its meaning.
REENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "reordered fields": lambda raw: _encode_json(dict(reversed(json.loads(raw).items()))),
    "no spaces": lambda raw: json.dumps(json.loads(raw), separators=(",", ":")).encode(),
    "indented": lambda raw: json.dumps(json.loads(raw), indent=1).encode(),
    "escaped letters": lambda raw: json.dumps(json.loads(raw), ensure_ascii=True).encode(),
    "escaped slashes": lambda raw: raw.replace(b"/", b"\\/"),
    "an escaped name": lambda raw: raw.replace(b'"amount"', b'"\\u0061mount"'),
    "numbers as floats": lambda raw: raw.replace(b": 1}", b": 1.0}"),
    "a duplicate key": lambda raw: raw[:-1] + b', "amount": "5"}',
    "composed letters": lambda raw: unicodedata.normalize("NFC", raw.decode()).encode(),
    "a byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "a trailing line feed": lambda raw: raw + b"\n",
    "a leading space": lambda raw: b" " + raw,
    "another amount": lambda raw: raw.replace(b'"amount": "5"', b'"amount": "50"'),
}


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


async def count_transactions(harness: Harness) -> int:
    count: int = await harness.database.fetchval(
        "SELECT count(*) FROM transactions WHERE type NOT IN ('transfer', 'partner_deposit')"
    )
    return count


@pytest.fixture
async def merchant(harness: Harness) -> PosDriver:
    return await PosDriver.create(harness)


async def test_signed_payment_with_a_reencoded_body_is_rejected(merchant: PosDriver) -> None:
    """A signature over the parsed object instead of the raw bytes would match any re-encoding."""
    raw = _encode_json(
        {
            "request_id": new_request_id(),
            "card_serial": merchant.card,
            "amount": "5",
            "merchant_name": "Cafe\u0301 a/b",
            "metadata": {"n": 1},
        }
    )
    headers = _sign_headers(merchant.merchant_auth, raw, PAY_URL)
    client = merchant.harness.client
    for reencoding, reencode in REENCODINGS.items():
        changed = reencode(raw)
        assert changed != raw, reencoding
        response = await client.post(PAY_URL, content=changed, headers=headers)
        assert parse_error(response) == UNAUTHORIZED, reencoding
    assert await count_transactions(merchant.harness) == 0
    response = await client.post(PAY_URL, content=raw, headers=headers)
    assert response.status_code == 200
    assert await count_transactions(merchant.harness) == 1


async def test_signed_partner_top_up_with_a_reencoded_body_is_rejected(harness: Harness) -> None:
    """Covers the partner's signed request and its webhook."""
    partner = await create_partner(harness, balance="1000")
    customer = await harness.create_subscriber()
    body = {"amount": "5", "note": "Cafe\u0301 a/b", "metadata": {"n": 1}}
    request = _encode_json({"subscriber_id": customer["id"], "partner_reference": "A", **body})
    webhook = _encode_json({"phone_number": customer["phone_number"], "reference": "B", **body})
    headers = _sign_headers(get_partner_auth(partner), request, FUND_URL)
    signature = signing.webhook_signature(partner["webhook_secret"].encode(), webhook)
    for reencoding, reencode in REENCODINGS.items():
        response = await harness.post(FUND_URL, content=reencode(request), headers=headers)
        assert parse_error(response) == UNAUTHORIZED, reencoding
        response = await post_webhook(
            harness.client, partner, reencode(webhook), **{"X-Webhook-Signature": signature}
        )
        assert parse_error(response) == UNAUTHORIZED, reencoding
    assert await count_transactions(harness) == 0
    assert (await harness.post(FUND_URL, content=request, headers=headers)).is_success
    assert (await post_webhook(harness.client, partner, webhook)).is_success
    assert await get_wallet_balance(harness, customer) == "10.00"


async def test_duplicate_json_key_is_validated_and_executed_with_the_same_value(
    merchant: PosDriver,
) -> None:
    """If parsers disagreed on duplicate keys, limits could be checked on the wrong amount."""
    request_id, harness = new_request_id(), merchant.harness
    body = (
        f'{{"request_id": "{request_id}", "card_serial": "{merchant.card}", "pin": "{WRONG_PIN}",'
        f'"amount": "1", "amount": "700", "pin": "{PIN}"}}'
    ).encode()
    response = await harness.post(
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
    response = await harness.post(
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
    responses = [await harness.post(VERIFY_URL, content=raw, headers=headers) for _ in range(4)]
    assert [parse_error(response) for response in responses] == [
        (400, "INVALID_PIN"),
        (400, "INVALID_PIN"),
        (400, "INVALID_PIN"),
        (403, "ACCOUNT_LOCKED"),
    ]
