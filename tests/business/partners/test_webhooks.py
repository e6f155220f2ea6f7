"""Partner webhooks: signatures, validation, and at most one top-up per reference."""

import json
from typing import Any

import msgspec
import pytest

from builders.hostile_input import CANARY, HOSTILE_BODIES, HOSTILE_VALUES
from builders.participants import (
    UNKNOWN_PARTNER_IDS,
    create_partner,
    get_partner_balance,
    get_wallet_balance,
    post_webhook,
    suspend_partner,
)
from cases import each
from harness import Harness, parse_error
from tapgate_client import ids, signing
from tapgate_client.schemas.partners import WebhookTopUp

UNAUTHORIZED_ERROR = {
    "message": "The partner is unknown, or X-Webhook-Signature is missing or invalid."
}


async def _build_top_up(harness: Harness, **fields: Any) -> dict[str, Any]:
    customer = await harness.create_subscriber()
    return {
        "reference": "INV-1",
        "phone_number": customer["phone_number"],
        "amount": "40.00",
        "currency": "SLE",
        **fields,
    }


async def test_webhook_funds_the_subscriber(harness: Harness) -> None:
    new = await create_partner(harness, balance="100")
    customer = await harness.create_subscriber(balance="1000")
    serial = await harness.create_card(customer["id"])
    body = {"reference": "INV-1", "card_serial": serial, "amount": "40"}
    response = await post_webhook(harness.client, new, body)
    assert response.status_code == 200, response.text
    receipt = response.json()
    assert receipt == {
        "success": True,
        "message": "Wallet funded",
        "transaction_id": receipt["transaction_id"],
        "status": "completed",
        "amount": "40.00 SLE",
        "new_balance": "1,040.00 SLE",
    }
    row = await harness.database.fetchrow(
        """SELECT type, channel, partner_reference, to_card_serial FROM transactions
           WHERE id = $1""",
        ids.decode(ids.TRANSACTION, receipt["transaction_id"]),
    )
    assert row is not None
    assert tuple(row) == ("partner_fund", "partner", "INV-1", serial)
    by_phone = body | {"reference": "INV-2", "phone_number": customer["phone_number"]}
    del by_phone["card_serial"]
    response = await post_webhook(harness.client, new, by_phone)
    assert response.json()["new_balance"] == "1,080.00 SLE"
    assert await get_partner_balance(harness, new) == "20.00"


@pytest.mark.parametrize("pattern", ["{}", "sha256={}"])
@pytest.mark.parametrize("case", [str.lower, str.upper])
async def test_signature_is_accepted_with_or_without_prefix_in_any_case(
    harness: Harness, pattern: str, case: Any
) -> None:
    new, body = await create_partner(harness, balance="100"), await _build_top_up(harness)
    raw = json.dumps(body).encode()
    signature = case(signing.webhook_signature(new["webhook_secret"].encode(), raw))
    headers = {"X-Webhook-Signature": pattern.format(signature)}
    assert (await post_webhook(harness.client, new, raw, **headers)).status_code == 200


async def test_invalid_signature_and_unknown_partner_get_the_same_error(harness: Harness) -> None:
    new, other = await create_partner(harness, balance="100"), await create_partner(harness)
    body = await _build_top_up(harness)
    raw = json.dumps(body).encode()
    valid_signature = signing.webhook_signature(new["webhook_secret"].encode(), raw)
    signed_with_hmac_secret = signing.webhook_signature(new["hmac_secret"].encode(), raw)
    url = f"/api/v1/webhooks/partners/{new['partner']['id']}"
    responses = [await harness.post(url, content=raw)]
    for signature in (
        "",
        "sha256=",
        valid_signature[:-1],
        valid_signature + "0",
        "é",
        "0" * 64,
        signed_with_hmac_secret,
    ):
        headers = {"X-Webhook-Signature": signature.encode()}
        responses.append(await harness.post(url, content=raw, headers=headers))
    responses.append(await post_webhook(harness.client, new | {"partner": other["partner"]}, raw))
    responses.append(
        await post_webhook(
            harness.client, new, raw + b" ", **{"X-Webhook-Signature": valid_signature}
        )
    )
    responses.append(
        await post_webhook(
            harness.client, new, b"not JSON", **{"X-Webhook-Signature": valid_signature}
        )
    )
    responses += [
        await post_webhook(harness.client, new | {"partner": {"id": id}}, raw)
        for id in UNKNOWN_PARTNER_IDS
    ]
    for response in responses:
        assert parse_error(response) == (401, "UNAUTHORIZED")
        assert response.json() == {
            "error": "Unauthorized",
            "code": "UNAUTHORIZED",
            **UNAUTHORIZED_ERROR,
        }
    assert await get_partner_balance(harness, new) == "100.00"


@each(
    "change, status, reported_field",
    [
        ({"phone_number": None}, 400, "card_serial"),
        ({"phone_number": None, "amount": "no"}, 400, "card_serial"),
        ({"reference": None}, 400, "reference"),
        ({"amount": None}, 400, "amount"),
        ({"amount": 40}, 400, "amount"),
        ({"card_serial": "TAP-000001"}, 422, "card_serial"),
        ({"card_serial": "TAP_1", "phone_number": None}, 422, "card_serial"),
        ({"phone_number": "076"}, 422, "phone_number"),
        ({"reference": ""}, 422, "reference"),
        ({"reference": "\0"}, 422, "reference"),
        ({"amount": "0"}, 422, "amount"),
    ],
)
async def test_invalid_webhook_field_is_rejected(
    harness: Harness, change: dict[str, Any], status: int, reported_field: str
) -> None:
    new, body = await create_partner(harness), await _build_top_up(harness, **change)
    response = await post_webhook(harness.client, new, body)
    assert response.status_code == status, response.text
    assert list(response.json()["details"]["fields"]) == [reported_field]


@each("raw", [b"", b"null", b"[]", b"{", b"\xff", b"[" * 10_000])
async def test_malformed_body_is_rejected(harness: Harness, raw: bytes) -> None:
    response = await post_webhook(harness.client, await create_partner(harness), raw)
    assert parse_error(response) == (400, "INVALID_REQUEST")


async def test_hostile_signed_bodies_are_rejected_without_echoing_them(harness: Harness) -> None:
    new = await create_partner(harness)
    fields = [field.encode_name for field in msgspec.structs.fields(WebhookTopUp)]
    filled = [msgspec.json.encode(dict.fromkeys(fields, value)) for value in HOSTILE_VALUES]
    for raw in (*HOSTILE_BODIES, *filled):
        response = await post_webhook(harness.client, new, raw)
        assert response.status_code in (400, 413, 422), (raw[:80], response.text)
        assert CANARY not in response.text


async def test_unsupported_currency_is_rejected(harness: Harness) -> None:
    response = await post_webhook(
        harness.client, await create_partner(harness), await _build_top_up(harness, currency="USD")
    )
    assert parse_error(response) == (422, "CURRENCY_NOT_SUPPORTED")


async def test_unknown_phone_number_or_card_is_not_found(harness: Harness) -> None:
    new = await create_partner(harness, balance="100")
    body = await _build_top_up(harness, phone_number=harness.new_phone_number())
    assert parse_error(await post_webhook(harness.client, new, body)) == (
        404,
        "SUBSCRIBER_NOT_FOUND",
    )
    del body["phone_number"]
    response = await post_webhook(harness.client, new, body | {"card_serial": "NONE"})
    assert parse_error(response) == (404, "CARD_NOT_FOUND")


async def test_redelivery_replays_and_changed_content_is_a_conflict(harness: Harness) -> None:
    new, body = await create_partner(harness, balance="100"), await _build_top_up(harness)
    first = await post_webhook(harness.client, new, body)
    replayed = await post_webhook(harness.client, new, body | {"amount": "40"})
    assert (replayed.status_code, replayed.json()) == (200, first.json())
    assert replayed.headers["Idempotent-Replayed"] == "true"
    for change in (
        {"amount": "41"},
        {"phone_number": (await harness.create_subscriber())["phone_number"]},
    ):
        assert parse_error(await post_webhook(harness.client, new, body | change)) == (
            409,
            "DUPLICATE_REFERENCE",
        )


async def test_decline_does_not_consume_the_reference(harness: Harness) -> None:
    new, body = await create_partner(harness), await _build_top_up(harness)
    for _ in range(2):
        response = await post_webhook(harness.client, new, body)
        assert parse_error(response) == (402, "INSUFFICIENT_FUNDS")
        assert response.json()["details"] == {"available": 0.0, "required": 40.0}
        assert "Idempotent-Replayed" not in response.headers
    failed = await harness.database.fetchval(
        "SELECT count(*) FROM transactions WHERE status = 'failed'"
    )
    assert failed == 2
    await harness.post(
        f"/api/v1/admin/partners/{new['partner']['id']}/fund",
        json={"amount": "40"},
        auth=await harness.create_admin(),
    )
    assert (await post_webhook(harness.client, new, body)).status_code == 200


async def test_webhook_of_a_suspended_partner_stores_nothing(harness: Harness) -> None:
    new, body = await create_partner(harness), await _build_top_up(harness)
    await suspend_partner(harness, new)
    assert parse_error(await post_webhook(harness.client, new, body)) == (403, "PARTNER_SUSPENDED")
    assert await harness.database.fetchval("SELECT count(*) FROM transactions") == 0


async def test_webhook_funds_a_restricted_subscriber_without_revealing_the_balance(
    harness: Harness,
) -> None:
    new = await create_partner(harness, balance="100")
    customer = await harness.create_restricted_subscriber()
    body = await _build_top_up(harness, phone_number=customer["phone_number"])
    response = await post_webhook(harness.client, new, body)
    assert (response.status_code, response.json()["new_balance"]) == (200, None)
    assert await get_wallet_balance(harness, customer) == "40.00"


async def test_maximum_balance_decline_does_not_reveal_a_restricted_balance(
    harness: Harness,
) -> None:
    new = await create_partner(harness, balance="1000")
    customer = await harness.create_restricted_subscriber(balance="499980")
    body = await _build_top_up(harness, phone_number=customer["phone_number"])
    response = await post_webhook(harness.client, new, body)
    assert parse_error(response) == (403, "MAX_BALANCE_EXCEEDED")
    assert response.json()["details"].keys() == {"limit", "attempted", "party"}
