"""Keysets, and cards that sign their taps."""

from typing import Any

import httpx2
import msgspec

from builders.payments import PosDriver
from harness import Harness
from tapgate_sandbox.software_card import SoftwareCard

CARDS_URL = "/api/v1/cards"
META_READ_KEY = "000102030405060708090A0B0C0D0E0F"
FILE_READ_KEY = "F0E0D0C0B0A090807060504030201000"


async def create_keyset(harness: Harness, name: str = "Bureau", **keys: str) -> dict[str, Any]:
    response = await harness.post(
        f"{CARDS_URL}/keysets", json={"name": name, **keys}, auth=await harness.create_admin()
    )
    assert response.status_code == 201, response.text
    record: dict[str, Any] = response.json()
    return record


async def retire_keyset(
    harness: Harness, keyset: dict[str, Any], cards: Any = None
) -> httpx2.Response:
    return await harness.post(
        f"{CARDS_URL}/keysets/{keyset['id']}/retire",
        json=None if cards is None else {"cards": cards},
        auth=await harness.create_admin(),
    )


async def personalize(harness: Harness, serial: str, keyset: dict[str, Any]) -> httpx2.Response:
    return await harness.post(
        f"{CARDS_URL}/{serial}/personalize",
        json={"keyset_id": keyset["id"]},
        auth=await harness.create_admin(),
    )


async def encode_card(harness: Harness, serial: str, keyset: dict[str, Any]) -> SoftwareCard:
    """Personalize a card, and return a chip with its new keys, which are not confirmed yet."""
    response = await personalize(harness, serial, keyset)
    assert response.status_code == 200, response.text
    issued = response.json()
    return SoftwareCard(
        bytes.fromhex(issued["uid"]),
        bytes.fromhex(issued["keys"]["k2"]),
        bytes.fromhex(issued["keys"]["k1"]),
    )


async def confirm(harness: Harness, serial: str, proof: dict[str, str]) -> httpx2.Response:
    return await harness.post(
        f"{CARDS_URL}/{serial}/personalize/confirm",
        json={"card_proof": proof},
        auth=await harness.create_admin(),
    )


def tap(chip: SoftwareCard) -> dict[str, str]:
    """Return a new tap's proof, as JSON."""
    proof: dict[str, str] = msgspec.to_builtins(chip.tap())
    return proof


async def create_signing_card(
    harness: Harness, serial: str, keyset: dict[str, Any] | None = None
) -> SoftwareCard:
    """Personalize a card and confirm its keys. Its counter is then 1."""
    chip = await encode_card(harness, serial, keyset or await create_keyset(harness))
    response = await confirm(harness, serial, tap(chip))
    assert response.status_code == 200, response.text
    return chip


async def create_signing_pos(harness: Harness, **options: Any) -> tuple[PosDriver, SoftwareCard]:
    """Return a merchant and a customer whose card signs its taps."""
    pos = await PosDriver.create(harness, **options)
    return pos, await create_signing_card(harness, pos.card)


async def list_taps(harness: Harness, serial: str) -> list[dict[str, Any]]:
    response = await harness.get(
        f"{CARDS_URL}/{serial}/taps", auth=await harness.create_api_key("cards:read")
    )
    assert response.status_code == 200, response.text
    data: list[dict[str, Any]] = response.json()["data"]
    return data


async def list_clone_alerts(harness: Harness) -> list[dict[str, Any]]:
    response = await harness.get("/api/v1/compliance/alerts", auth=await harness.create_admin("C"))
    assert response.status_code == 200, response.text
    return [
        alert for alert in response.json()["data"] if alert["alert_type"] == "CARD_CLONE_SUSPECTED"
    ]
