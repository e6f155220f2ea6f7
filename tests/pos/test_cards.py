"""Card verification and lookup by terminals and apps."""

import httpx2
import pytest

from builders.payments import LOOKUP_URL, VERIFY_URL, PosDriver
from cases import each
from harness import PIN, Harness, parse_error


async def test_verify_card_with_pin_returns_holder_and_balance(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    pos = await PosDriver.create(harness, balance="1234.50")
    response = await client.post(
        VERIFY_URL, json={"card_serial": pos.card, "pin": PIN}, auth=pos.merchant_auth
    )
    assert response.status_code == 200, response.text
    assert response.json() == {
        "success": True,
        "message": "Card is active",
        "is_active": True,
        "holder_name": "Aminata K.",
        "balance": "1,234.50 SLE",
    }


async def test_verify_inactive_card_omits_the_balance(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    pos = await PosDriver.create(harness, status="BLOCKED")
    response = await client.post(
        VERIFY_URL, json={"card_serial": pos.card, "pin": PIN}, auth=pos.merchant_auth
    )
    assert response.json() == {
        "success": True,
        "message": "Card is not active",
        "is_active": False,
        "holder_name": "Aminata K.",
    }


@pytest.mark.parametrize("prefix", ["", "/api/v1"])
async def test_verify_card_by_an_app_omits_the_balance(
    client: httpx2.AsyncClient, harness: Harness, prefix: str
) -> None:
    pos = await PosDriver.create(harness)
    response = await client.post(
        f"{prefix}/payment/verify-card", json={"card_serial": pos.card}, auth=pos.merchant_auth
    )
    assert response.json() == {
        "success": True,
        "message": "Card is active",
        "is_active": True,
        "holder_name": "Aminata K.",
    }


@pytest.mark.parametrize("url", [LOOKUP_URL, "/payment/lookup-card", "/api/v1/payment/lookup-card"])
async def test_lookup_finds_a_card_by_serial_or_uid(
    client: httpx2.AsyncClient, harness: Harness, url: str
) -> None:
    pos = await PosDriver.create(harness, uid="04:A1:B2:C3:D4:E5:80")
    for identifier in (pos.card, "04:A1:B2:C3:D4:E5:80", "04a1b2c3d4e580", "04-a1-b2-c3-d4-e5-80"):
        response = await client.post(
            url, json={"card_identifier": identifier}, auth=pos.merchant_auth
        )
        assert response.status_code == 200, (identifier, response.text)
        assert response.json() == {
            "success": True,
            "message": "Card found",
            "card_serial": pos.card,
            "card_type": "PARENT",
            "status": "ACTIVE",
            "holder_name": "Aminata K.",
        }


@each("url", [LOOKUP_URL, VERIFY_URL, "/payment/verify-card", "/payment/lookup-card"])
async def test_unknown_card_returns_card_not_found(
    client: httpx2.AsyncClient, harness: Harness, url: str
) -> None:
    body = {"card_serial": "NOBODY-1", "card_identifier": "NOBODY-1", "pin": PIN}
    response = await client.post(url, json=body, auth=await harness.create_processor())
    assert parse_error(response) == (404, "CARD_NOT_FOUND")
