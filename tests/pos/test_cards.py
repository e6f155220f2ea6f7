"""Card verification and lookup by terminals and apps."""

import asyncio

import httpx2
import pytest

from harness import PIN, WRONG_PIN, Harness
from pos.builders import LOOKUP_URL, VERIFY_URL, PosDriver, parse_error


async def test_verify_card_with_pin_returns_holder_and_balance(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    shop = await PosDriver.create(world, balance="1234.50")
    answer = await client.post(
        VERIFY_URL, json={"card_serial": shop.card, "pin": PIN}, auth=shop.merchant_auth
    )
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "success": True,
        "message": "Card is active",
        "is_active": True,
        "holder_name": "Aminata K.",
        "balance": "1,234.50 SLE",
    }


async def test_verify_inactive_card_omits_the_balance(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    shop = await PosDriver.create(world, status="BLOCKED")
    answer = await client.post(
        VERIFY_URL, json={"card_serial": shop.card, "pin": PIN}, auth=shop.merchant_auth
    )
    assert answer.json() == {
        "success": True,
        "message": "Card is not active",
        "is_active": False,
        "holder_name": "Aminata K.",
    }


async def test_concurrent_wrong_pins_share_one_limit_of_three_attempts(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    shop = await PosDriver.create(world)
    body = {"card_serial": shop.card, "pin": WRONG_PIN}
    answers = await asyncio.gather(
        *(client.post(VERIFY_URL, json=body, auth=shop.merchant_auth) for _ in range(20))
    )
    codes = sorted(parse_error(answer) for answer in answers)
    assert codes == [(400, "INVALID_PIN")] * 3 + [(403, "ACCOUNT_LOCKED")] * 17


@pytest.mark.parametrize("prefix", ["", "/api/v1"])
async def test_verify_card_by_an_app_omits_the_balance(
    client: httpx2.AsyncClient, world: Harness, prefix: str
) -> None:
    shop = await PosDriver.create(world)
    answer = await client.post(
        f"{prefix}/payment/verify-card", json={"card_serial": shop.card}, auth=shop.merchant_auth
    )
    assert answer.json() == {
        "success": True,
        "message": "Card is active",
        "is_active": True,
        "holder_name": "Aminata K.",
    }


@pytest.mark.parametrize("url", [LOOKUP_URL, "/payment/lookup-card", "/api/v1/payment/lookup-card"])
async def test_lookup_finds_a_card_by_serial_or_uid(
    client: httpx2.AsyncClient, world: Harness, url: str
) -> None:
    shop = await PosDriver.create(world, uid="04:A1:B2:C3:D4:E5:80")
    for identifier in (shop.card, "04:A1:B2:C3:D4:E5:80", "04a1b2c3d4e580", "04-a1-b2-c3-d4-e5-80"):
        answer = await client.post(
            url, json={"card_identifier": identifier}, auth=shop.merchant_auth
        )
        assert answer.status_code == 200, (identifier, answer.text)
        assert answer.json() == {
            "success": True,
            "message": "Card found",
            "card_serial": shop.card,
            "card_type": "PARENT",
            "status": "ACTIVE",
            "holder_name": "Aminata K.",
        }


@pytest.mark.parametrize(
    "url", [LOOKUP_URL, VERIFY_URL, "/payment/verify-card", "/payment/lookup-card"]
)
async def test_unknown_card_returns_card_not_found(
    client: httpx2.AsyncClient, world: Harness, url: str
) -> None:
    body = {"card_serial": "NOBODY-1", "card_identifier": "NOBODY-1", "pin": PIN}
    answer = await client.post(url, json=body, auth=await world.create_processor())
    assert parse_error(answer) == (404, "CARD_NOT_FOUND")
