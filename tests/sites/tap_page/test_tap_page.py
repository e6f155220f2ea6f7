"""Page of a tapped card: it verifies the tap, leads to the chat, and reveals nothing else."""

import re
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest

from builders.card_proofs import (
    create_keyset,
    create_signing_pos,
    encode_card,
    list_clone_alerts,
    list_taps,
    tap,
)
from builders.http_apps import run_edge_app
from harness import Harness
from tapgate.runtime.store.database import Database
from tapgate.sites.tap_page.site import TapPage
from tapgate.sites.tap_page.texts import TEXTS
from tapgate_client.schemas.card_proofs import CardProof


def build_path(proof: dict[str, str]) -> str:
    return f"/t?picc_data={proof['picc_data']}&cmac={proof['cmac']}"


def change_settings(harness: Harness, **values: str) -> None:
    services = harness.services
    services.settings = services.settings.replace(**values)


def test_all_languages_have_the_same_texts() -> None:
    assert {frozenset(texts) for texts in TEXTS.values()} == {frozenset(TEXTS["en"])}


async def test_genuine_tap_names_the_operator_and_leads_to_the_chat(harness: Harness) -> None:
    change_settings(harness, operator_name="City Transit", messenger_phone_number="+23225000000")
    pos, chip = await create_signing_pos(harness, balance="100")
    proof = tap(chip)
    first, second = [await harness.get(build_path(proof)) for _ in range(2)]
    assert first.status_code == 200 and first.text == second.text
    assert "Genuine card" in first.text and "operated by City Transit" in first.text
    assert 'href="https://wa.me/23225000000?text=Link%20my%20card' in first.text
    assert f"/t?picc_data={proof['picc_data']}&cmac={proof['cmac']}" in unquote(first.text)
    assert "<script" not in first.text
    assert first.headers["Referrer-Policy"] == "no-referrer"
    assert first.headers["Cache-Control"] == "no-store"
    holder = await harness.get(
        f"/api/v1/cards/{pos.card}", auth=await harness.create_api_key("cards:read")
    )
    for private in (pos.card, holder.json()["holder_name"], "100.00"):
        assert private not in first.text
    # The tap is not consumed, so that it still pays.
    assert (await pos.pay("10", card_proof=proof)).status_code == 200
    assert "Link already used" in (await harness.get(build_path(proof))).text


async def test_forged_taps_are_not_verified_and_raise_no_alert(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    proof = tap(chip)
    forged = CardProof(picc_data=proof["picc_data"], cmac="0" * 16)
    unknown = CardProof(picc_data="0" * 32, cmac=proof["cmac"])
    for changed in (forged, unknown):
        response = await harness.get(build_path(msgspec.to_builtins(changed)))
        assert "Card not verified" in response.text and 'href="http' not in response.text
    issued = await encode_card(harness, pos.card, await create_keyset(harness, "Next"))
    assert "Card not ready yet" in (await harness.get(build_path(tap(issued)))).text
    assert await list_clone_alerts(harness) == []
    assert [each["result"] for each in await list_taps(harness, pos.card)] == ["accepted"]


@pytest.mark.parametrize("path", ["/t", "/t?picc_data=EF&cmac=00", "/t?picc_data=%FF%00"])
async def test_page_without_a_tap_asks_for_one_in_the_language_of_the_browser(
    harness: Harness, path: str
) -> None:
    assert "Tap a card" in (await harness.get(path)).text
    response = await harness.get(path, headers={"Accept-Language": "de, fr-FR;q=0.8, en;q=0.5"})
    assert "Approchez une carte" in response.text and '<html lang="fr">' in response.text


async def test_page_without_a_tap_needs_no_database(harness: Harness) -> None:
    harness.services.database = await Database.connect("postgresql:///tapgate?host=/nowhere")
    assert "Tap a card" in (await harness.get("/t")).text


async def test_stylesheets_are_public_and_served_and_other_paths_and_methods_are_not(
    harness: Harness,
) -> None:
    paths = re.findall(r'stylesheet" href="([^"]+)', (await harness.get("/t")).text)
    assert "/t/assets/tap.css" in paths
    for path in paths:
        assert path.startswith(("/t/", "/guide/"))  # the console is usually not public
        assert (await harness.get(path)).status_code == 200
    assert (await harness.get("/t/other")).status_code == 404
    assert (await harness.post("/t")).status_code == 405


async def test_requests_are_limited_by_address(tmp_path: Path) -> None:
    limits = {"TAPGATE_RATE_LIMIT": "1", "TAPGATE_RATE_BURST": "2"}
    async with run_edge_app(tmp_path, [TapPage()], **limits) as gateway:
        responses = [await gateway.client.get("/t/assets/tap.css") for _ in range(8)]
    assert responses[0].status_code == 200
    limited = next(response for response in responses if response.status_code == 429)
    assert "Page not available" in limited.text and "Retry-After" in limited.headers
