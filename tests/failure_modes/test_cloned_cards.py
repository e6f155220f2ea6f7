"""Failure mode: a card is duplicated, or changes owner during a payment."""

import asyncio
from typing import Any

import httpx2
import pytest

from drivers.actors import require_error, require_success
from drivers.deployments import TwoGateways
from drivers.processes import PendingResponse, count_outcomes
from harness import PIN

HEADER = "Serial No.,MAC Address"
UID = "04:A1:B2:C3:D4:E5:F6"


async def _upload_cards(two_gateways: TwoGateways, *rows: str) -> dict[str, Any]:
    return require_success(await two_gateways.admin.upload_csv("\n".join([HEADER, *rows])))


@pytest.mark.parametrize(
    "spelling", [UID, UID.lower(), UID.replace(":", ""), UID.replace(":", "-").lower()]
)
async def test_card_uid_cannot_be_uploaded_under_a_second_serial(
    two_gateways: TwoGateways, spelling: str
) -> None:
    """One UID under two serials would make two cards match one tap."""
    assert (await _upload_cards(two_gateways, f"REAL-1,{UID}"))["created"] == 1
    second_upload = await _upload_cards(two_gateways, f"COPY-1,{spelling}")
    assert (second_upload["created"], len(second_upload["errors"])) == (0, 1)
    terminal = (await two_gateways.create_merchant()).server
    found = require_success(await terminal.post("pos/lookup-card", card_identifier=spelling))
    assert found["card_serial"] == "REAL-1"
    assert require_error(await terminal.pay("1", "COPY-1")) == (404, "CARD_NOT_FOUND")


async def test_upload_of_an_existing_serial_does_not_change_the_card_uid(
    two_gateways: TwoGateways,
) -> None:
    """Otherwise a thief's chip could replace the cardholder's."""
    await _upload_cards(two_gateways, f"REAL-1,{UID}")
    second_upload = await _upload_cards(two_gateways, "REAL-1,04:11:22:33:44:55:66")
    assert (second_upload["created"], second_upload["skipped"]) == (0, 1)
    terminal = (await two_gateways.create_merchant()).server
    response = await terminal.post("pos/lookup-card", card_identifier="04:11:22:33:44:55:66")
    assert require_error(response) == (404, "CARD_NOT_FOUND")
    require_success(await terminal.post("pos/lookup-card", card_identifier=UID))


@pytest.mark.parametrize("reason", ["stolen", "fraud"])
async def test_blocked_card_uid_cannot_be_uploaded_under_a_new_serial(
    two_gateways: TwoGateways, reason: str
) -> None:
    """A stolen card must not be reactivated by uploading its UID with a new serial."""
    aminata = await two_gateways.create_customer("100")
    await _upload_cards(two_gateways, f"REAL-1,{UID}")
    await two_gateways.app.link_card("REAL-1", aminata)
    require_success(await two_gateways.admin.post("cards/REAL-1/block", reason=reason))
    second_upload = await _upload_cards(two_gateways, f"NEW-1,{UID}")
    assert (second_upload["created"], len(second_upload["errors"])) == (0, 1)
    terminal = (await two_gateways.create_merchant()).server
    found = require_success(await terminal.post("pos/lookup-card", card_identifier=UID))
    assert (found["card_serial"], found["status"] != "ACTIVE") == ("REAL-1", True)
    for client in two_gateways.clients:
        response = await terminal.with_client(client).pay("1", "REAL-1", PIN)
        assert require_error(response) == (403, "CARD_NOT_ACTIVE")
    # The blocked card cannot be linked to another subscriber.
    thief = await two_gateways.create_customer()
    linked = await two_gateways.app.post(
        "cards/link", subscriber_id=thief.id, card_serial="REAL-1", pin=PIN
    )
    assert require_error(linked) in {(409, "CARD_ALREADY_LINKED"), (403, "CARD_NOT_ACTIVE")}
    assert await aminata.get_balance() == "100.00"


async def test_card_linked_to_two_subscribers_concurrently_debits_only_one_wallet(
    two_gateways: TwoGateways,
) -> None:
    """If both links succeeded, one subscriber would pay for another's purchases."""
    customers = [await two_gateways.create_customer("100") for _ in range(2)]
    terminal = (await two_gateways.create_merchant()).server
    await _upload_cards(two_gateways, f"REAL-1,{UID}")

    def link(number: int) -> PendingResponse:
        return two_gateways.app.with_client(two_gateways.clients[number]).post(
            "cards/link", subscriber_id=customers[number].id, card_serial="REAL-1", pin=PIN
        )

    async def tap(number: int) -> httpx2.Response:
        await asyncio.sleep(number / 500)
        return await terminal.with_client(two_gateways.clients[number % 2]).pay("1", "REAL-1")

    requests = [link(0), link(1), *(tap(number) for number in range(20))]
    responses = await asyncio.gather(*requests)
    links, taps = count_outcomes(responses[:2]), count_outcomes(responses[2:])
    assert links == {200: 1, (409, "CARD_ALREADY_LINKED"): 1}
    assert set(taps) <= {200, (403, "CARD_NOT_ACTIVE")}
    owner = customers[0 if responses[0].is_success else 1]
    other = customers[1 if responses[0].is_success else 0]
    assert await other.get_balance() == "100.00"
    assert await owner.get_balance() == f"{100 - taps[200]}.00"


async def test_no_payment_is_accepted_after_the_card_was_blocked(two_gateways: TwoGateways) -> None:
    """One process blocks the card while both processes receive payments with it."""
    aminata = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    blocked_before: list[bool] = []
    blocked = False

    async def tap(number: int) -> bool:
        was_blocked = blocked
        response = await terminal.with_client(two_gateways.clients[number % 2]).pay(
            "1", aminata.card
        )
        if response.is_success:
            blocked_before.append(was_blocked)
        return response.is_success

    async def block() -> None:
        nonlocal blocked
        ada = two_gateways.admin.with_client(two_gateways.clients[1])
        require_success(await ada.post(f"cards/{aminata.card}/block", reason="stolen"))
        blocked = True

    await asyncio.gather(*(tap(number) for number in range(10)), block())
    assert not any(await asyncio.gather(*(tap(number) for number in range(6))))
    assert not any(blocked_before)
