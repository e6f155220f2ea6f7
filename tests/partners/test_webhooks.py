"""Partner webhooks: signature, redelivery, and payment exactly once."""

import asyncio
import json
from typing import Any

import httpx2
import msgspec
import pytest

from gateway.test_hostile_input import CANARY, HOSTILE_BODIES, HOSTILE_VALUES
from harness import Harness
from partners.builders import (
    UNKNOWN_IDS,
    create_partner,
    get_balance,
    get_wallet_balance,
    parse_error,
    post_webhook,
    suspend_partner,
)
from tapgate import ids, signing
from tapgate.partners.top_ups.model import WebhookTopUp

UNAUTHORIZED_ERROR = {
    "message": "The partner is unknown, or X-Webhook-Signature is missing or invalid."
}


async def _build_top_up(world: Harness, **fields: Any) -> dict[str, Any]:
    customer = await world.create_subscriber()
    return {
        "reference": "INV-1",
        "phone_number": customer["phone_number"],
        "amount": "40.00",
        "currency": "SLE",
        **fields,
    }


async def test_webhook_funds_the_subscriber(client: httpx2.AsyncClient, world: Harness) -> None:
    new, customer = (
        await create_partner(world, balance="100"),
        await world.create_subscriber(balance="1000"),
    )
    serial = await world.create_card(customer["id"])
    body = {"reference": "INV-1", "card_serial": serial, "amount": "40"}
    answer = await post_webhook(client, new, body)
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
    assert receipt == {
        "success": True,
        "message": "Wallet funded",
        "transaction_id": receipt["transaction_id"],
        "status": "completed",
        "amount": "40.00 SLE",
        "new_balance": "1,040.00 SLE",
    }
    row = await world.services.database.fetchrow(
        """SELECT type, channel, partner_reference, to_card_serial FROM transactions
           WHERE id = $1""",
        ids.decode(ids.TRANSACTION, receipt["transaction_id"]),
    )
    assert row is not None
    assert tuple(row) == ("partner_fund", "partner", "INV-1", serial)
    by_phone = body | {"reference": "INV-2", "phone_number": customer["phone_number"]}
    del by_phone["card_serial"]
    assert (await post_webhook(client, new, by_phone)).json()["new_balance"] == "1,080.00 SLE"
    assert await get_balance(world, new) == "20.00"


@pytest.mark.parametrize("form", ["{}", "sha256={}"])
@pytest.mark.parametrize("case", [str.lower, str.upper])
async def test_signature_is_accepted_with_or_without_prefix_in_any_case(
    client: httpx2.AsyncClient, world: Harness, form: str, case: Any
) -> None:
    new, body = await create_partner(world, balance="100"), await _build_top_up(world)
    raw = json.dumps(body).encode()
    signature = case(signing.webhook_signature(new["webhook_secret"].encode(), raw))
    headers = {"X-Webhook-Signature": form.format(signature)}
    assert (await post_webhook(client, new, raw, **headers)).status_code == 200


async def test_missing_or_wrong_signature_gets_one_uniform_error(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, other = await create_partner(world, balance="100"), await create_partner(world)
    body = await _build_top_up(world)
    raw = json.dumps(body).encode()
    right = signing.webhook_signature(new["webhook_secret"].encode(), raw)
    by_hmac_secret = signing.webhook_signature(new["hmac_secret"].encode(), raw)
    url = f"/api/v1/webhooks/partners/{new['partner']['id']}"
    answers = [await client.post(url, content=raw)]
    for signature in ("", "sha256=", right[:-1], right + "0", "é", "0" * 64, by_hmac_secret):
        headers = {"X-Webhook-Signature": signature.encode()}
        answers.append(await client.post(url, content=raw, headers=headers))
    answers.append(await post_webhook(client, new | {"partner": other["partner"]}, raw))
    answers.append(await post_webhook(client, new, raw + b" ", **{"X-Webhook-Signature": right}))
    answers.append(await post_webhook(client, new, b"not JSON", **{"X-Webhook-Signature": right}))
    answers += [
        await post_webhook(client, new | {"partner": {"id": id}}, raw) for id in UNKNOWN_IDS
    ]
    for answer in answers:
        assert parse_error(answer) == (401, "UNAUTHORIZED")
        assert answer.json() == {
            "error": "Unauthorized",
            "code": "UNAUTHORIZED",
            **UNAUTHORIZED_ERROR,
        }
    assert await get_balance(world, new) == "100.00"


@pytest.mark.parametrize(
    ("change", "status", "named"),
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
    client: httpx2.AsyncClient, world: Harness, change: dict[str, Any], status: int, named: str
) -> None:
    new, body = await create_partner(world), await _build_top_up(world, **change)
    answer = await post_webhook(client, new, body)
    assert answer.status_code == status, answer.text
    assert list(answer.json()["details"]["fields"]) == [named]


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"{", b"\xff", b"[" * 10_000])
async def test_malformed_body_is_rejected(
    client: httpx2.AsyncClient, world: Harness, raw: bytes
) -> None:
    answer = await post_webhook(client, await create_partner(world), raw)
    assert parse_error(answer) == (400, "INVALID_REQUEST")


async def test_hostile_signed_bodies_are_rejected_without_echoing_them(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new = await create_partner(world)
    fields = [field.encode_name for field in msgspec.structs.fields(WebhookTopUp)]
    filled = [msgspec.json.encode(dict.fromkeys(fields, value)) for value in HOSTILE_VALUES]
    for raw in (*HOSTILE_BODIES, *filled):
        answer = await post_webhook(client, new, raw)
        assert answer.status_code in (400, 413, 422), (raw[:80], answer.text)
        assert CANARY not in answer.text


async def test_unsupported_currency_is_rejected(client: httpx2.AsyncClient, world: Harness) -> None:
    answer = await post_webhook(
        client, await create_partner(world), await _build_top_up(world, currency="USD")
    )
    assert parse_error(answer) == (422, "CURRENCY_NOT_SUPPORTED")


async def test_unknown_phone_number_or_card_is_not_found(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new = await create_partner(world, balance="100")
    body = await _build_top_up(world, phone_number=world.new_phone_number())
    assert parse_error(await post_webhook(client, new, body)) == (404, "SUBSCRIBER_NOT_FOUND")
    del body["phone_number"]
    answer = await post_webhook(client, new, body | {"card_serial": "NONE"})
    assert parse_error(answer) == (404, "CARD_NOT_FOUND")


async def test_redelivery_replays_and_changed_content_is_a_conflict(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, body = await create_partner(world, balance="100"), await _build_top_up(world)
    first = await post_webhook(client, new, body)
    again = await post_webhook(client, new, body | {"amount": "40"})
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    for change in (
        {"amount": "41"},
        {"phone_number": (await world.create_subscriber())["phone_number"]},
    ):
        assert parse_error(await post_webhook(client, new, body | change)) == (
            409,
            "DUPLICATE_REFERENCE",
        )


async def test_decline_does_not_consume_the_reference(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, body = await create_partner(world), await _build_top_up(world)
    for _ in range(2):
        answer = await post_webhook(client, new, body)
        assert parse_error(answer) == (402, "INSUFFICIENT_FUNDS")
        assert answer.json()["details"] == {"available": 0.0, "required": 40.0}
        assert "Idempotent-Replayed" not in answer.headers
    failed = await world.services.database.fetchval(
        "SELECT count(*) FROM transactions WHERE status = 'failed'"
    )
    assert failed == 2
    await world.client.post(
        f"/api/v1/admin/partners/{new['partner']['id']}/fund",
        json={"amount": "40"},
        auth=await world.create_admin(),
    )
    assert (await post_webhook(client, new, body)).status_code == 200


async def test_webhook_of_a_suspended_partner_stores_nothing(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, body = await create_partner(world), await _build_top_up(world)
    await suspend_partner(world, new)
    assert parse_error(await post_webhook(client, new, body)) == (403, "PARTNER_SUSPENDED")
    assert await world.services.database.fetchval("SELECT count(*) FROM transactions") == 0


async def test_webhook_is_declined_if_the_receiver_cannot_accept_the_amount(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, customer = await create_partner(world, balance="600000"), await world.create_subscriber()
    body = await _build_top_up(world, phone_number=customer["phone_number"])
    answer = await post_webhook(client, new, body | {"amount": "500000.01"})
    assert parse_error(answer) == (403, "MAX_BALANCE_EXCEEDED")
    lost = {"reference": "INV-2", "amount": "1"}
    lost["card_serial"] = await world.create_card(customer["id"], status="LOST")
    answer = await post_webhook(client, new, lost)
    assert parse_error(answer) == (403, "CARD_NOT_ACTIVE")
    await world.client.post(
        f"/api/v1/subscribers/{customer['id']}/block",
        json={"reason": "lost phone"},
        auth=await world.create_admin(),
    )
    answer = await post_webhook(client, new, body)
    assert parse_error(answer) == (403, "SUBSCRIBER_BLOCKED")
    assert answer.json()["details"] == {"party": "receiver"}


async def test_webhook_funds_a_restricted_subscriber_without_revealing_the_balance(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, customer = (
        await create_partner(world, balance="100"),
        await world.create_restricted_subscriber(),
    )
    body = await _build_top_up(world, phone_number=customer["phone_number"])
    answer = await post_webhook(client, new, body)
    assert (answer.status_code, answer.json()["new_balance"]) == (200, None)
    assert await get_wallet_balance(world, customer) == "40.00"


async def test_maximum_balance_decline_does_not_reveal_a_restricted_balance(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new = await create_partner(world, balance="1000")
    customer = await world.create_restricted_subscriber(balance="499980")
    body = await _build_top_up(world, phone_number=customer["phone_number"])
    answer = await post_webhook(client, new, body)
    assert parse_error(answer) == (403, "MAX_BALANCE_EXCEEDED")
    assert answer.json()["details"].keys() == {"limit", "attempted", "party"}


async def test_concurrent_identical_webhooks_pay_once(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: Harness
) -> None:
    new, customer = await create_partner(world, balance="1000"), await world.create_subscriber()
    body = await _build_top_up(world, phone_number=customer["phone_number"])
    answers = await asyncio.gather(
        *(post_webhook(process, new, body) for process in [client, other_client] * 10)
    )
    assert [answer.status_code for answer in answers] == [200] * 20
    assert len({answer.text for answer in answers}) == 1
    paid = [answer for answer in answers if "Idempotent-Replayed" not in answer.headers]
    assert len(paid) == 1
    assert await get_balance(world, new) == "960.00"
    assert await get_wallet_balance(world, customer) == "40.00"


async def test_concurrent_webhooks_with_the_same_reference_pay_only_one_subscriber(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: Harness
) -> None:
    new = await create_partner(world, balance="1000")
    bodies = [await _build_top_up(world) for _ in range(2)]
    answers = await asyncio.gather(
        post_webhook(client, new, bodies[0]), post_webhook(other_client, new, bodies[1])
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert await get_balance(world, new) == "960.00"
