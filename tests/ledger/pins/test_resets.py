"""Changing and resetting agent and child card PINs through the API."""

import asyncio
from typing import Any, NamedTuple

import httpx2
import pytest

from builders.participants import (
    AGENT_PIN,
    AGENTS_URL,
    CARDS_URL,
    CHILD_PIN,
    block_card,
    create_agent,
    create_card,
    create_child_card,
    link_card,
    pay_by_card,
)
from drivers.database_sessions import wait_for_lock_waiters
from harness import PIN, WRONG_PIN, Harness, parse_error

NEW_PIN, OTHER_PIN = "8264", "6419"
OWNERS = ["subscriber", "card", "agent"]


class PinOwner(NamedTuple):
    """Resource with a PIN, and the phone that receives its reset codes."""

    harness: Harness
    type: str
    id: str
    url: str
    phone_number: str
    pin: str

    async def post(self, action: str, *, auth: Any = None, **body: str) -> httpx2.Response:
        auth = auth or await self.harness.create_admin()
        return await self.harness.client.post(f"{self.url}/{action}", json=body, auth=auth)

    async def request_code(self) -> str:
        response = await self.post("reset-pin", auth=self.harness.get_service_auth())
        assert response.status_code == 200, response.text
        code = await self.harness.get_pending_code(self.phone_number)
        assert code not in response.text
        return code

    async def confirm(self, code: str, new_pin: str = NEW_PIN) -> httpx2.Response:
        auth = self.harness.get_service_auth()
        return await self.post("reset-pin/confirm", auth=auth, otp=code, new_pin=new_pin)

    async def change_pin(self, old_pin: str, new_pin: str = OTHER_PIN) -> httpx2.Response:
        return await self.post("change-pin", old_pin=old_pin, new_pin=new_pin)


@pytest.fixture(params=OWNERS)
async def owner(harness: Harness, request: pytest.FixtureRequest) -> PinOwner:
    if request.param == "agent":
        agent = await create_agent(harness)
        url = f"{AGENTS_URL}/{agent['id']}"
        return PinOwner(harness, "agent", agent["id"], url, agent["phone_number"], AGENT_PIN)
    serial, parent = await create_child_card(harness)
    phone_number = parent["phone_number"]
    if request.param == "card":
        url = f"{CARDS_URL}/{serial}"
        return PinOwner(harness, "card", serial, url, phone_number, CHILD_PIN)
    url = f"/api/v1/subscribers/{parent['id']}"
    return PinOwner(harness, "subscriber", parent["id"], url, phone_number, PIN)


def build_wrong_code(code: str) -> str:
    return f"{(int(code) + 1) % 1_000_000:06d}"


async def test_code_sets_a_new_pin_and_unlocks_it(owner: PinOwner) -> None:
    for _ in range(3):
        assert parse_error(await owner.change_pin(WRONG_PIN)) == (400, "INVALID_PIN")
    assert parse_error(await owner.change_pin(owner.pin)) == (403, "ACCOUNT_LOCKED")
    response = await owner.confirm(await owner.request_code())
    assert (response.status_code, response.json()) == (
        200,
        {"success": True, "message": "PIN reset"},
    )
    assert parse_error(await owner.change_pin(owner.pin)) == (400, "INVALID_PIN")
    assert (await owner.change_pin(NEW_PIN)).status_code == 200
    list_entries = owner.harness.list_audit_entries
    assert len(await list_entries(owner.id, f"{owner.type}.pin_reset_requested")) == 1
    (entry,) = await list_entries(owner.id, f"{owner.type}.pin_reset")
    assert (entry["result"], entry["changes"]) == ("success", {"pin": ["***", "***"]})
    assert entry["actor"]["type"] == "service"


async def test_wrong_codes_are_counted_audited_and_limited(owner: PinOwner) -> None:
    code = await owner.request_code()
    for remaining in (2, 1, 0, 0):
        response = await owner.confirm(build_wrong_code(code))
        assert parse_error(response) == (400, "INVALID_OTP")
        assert response.json()["details"] == {"attempts_remaining": remaining}
    assert parse_error(await owner.confirm(code)) == (400, "INVALID_OTP")
    entries = await owner.harness.list_audit_entries(owner.id, f"{owner.type}.pin_reset")
    expected = [("failure", "INVALID_OTP")] * 5
    assert [(entry["result"], entry["reason"]) for entry in entries] == expected
    for _ in range(4):
        owner.harness.advance_clock(minutes=13)
        code = await owner.request_code()
        for _ in range(3):
            await owner.confirm(build_wrong_code(code))
    owner.harness.advance_clock(hours=1)
    response = await owner.post("reset-pin")
    assert parse_error(response) == (429, "RATE_LIMITED")
    assert int(response.headers["retry-after"]) > 3600
    assert (await owner.change_pin(owner.pin)).status_code == 200


async def test_phone_gets_one_code_per_minute(owner: PinOwner) -> None:
    code = await owner.request_code()
    response = await owner.post("reset-pin")
    assert parse_error(response) == (429, "RATE_LIMITED")
    assert int(response.headers["retry-after"]) in (59, 60)
    assert (await owner.confirm(code)).status_code == 200


async def test_invalid_confirmation_does_not_use_the_code(owner: PinOwner) -> None:
    code = await owner.request_code()
    cases: list[tuple[dict[str, str], int, str]] = [
        ({"new_pin": NEW_PIN}, 400, "otp"),
        ({"otp": code}, 400, "new_pin"),
        ({"otp": "12345", "new_pin": NEW_PIN}, 422, "otp"),
        ({"otp": code, "new_pin": "82a4"}, 422, "new_pin"),
        ({"otp": code, "new_pin": "1111"}, 422, "new_pin"),
    ]
    for body, status, field in cases:
        response = await owner.post("reset-pin/confirm", **body)
        assert response.status_code == status, body
        assert list(response.json()["details"]["fields"]) == [field]
    assert (await owner.confirm(code)).status_code == 200


async def test_concurrent_confirmations_with_one_code_set_one_pin(owner: PinOwner) -> None:
    code = await owner.request_code()
    pins = (NEW_PIN, OTHER_PIN)
    responses = await asyncio.gather(*(owner.confirm(code, pin) for pin in pins * 4))
    accepted = [
        pin
        for pin, response in zip(pins * 4, responses, strict=True)
        if response.status_code == 200
    ]
    assert len(accepted) == 1
    expected = {(400, "INVALID_OTP")}
    assert {parse_error(response) for response in responses if response.is_error} == expected
    (rejected,) = {*pins} - {*accepted}
    assert parse_error(await owner.change_pin(rejected, "7053")) == (400, "INVALID_PIN")
    assert (await owner.change_pin(accepted[0], "7053")).status_code == 200


async def change_phone_number(owner: PinOwner) -> None:
    """Change the phone number that receives the owner's codes."""
    harness, url = owner.harness, owner.url
    admin = await harness.create_admin()
    if owner.type == "card":
        card = (await harness.client.get(url, auth=admin)).json()
        url = f"/api/v1/subscribers/{card['parent_subscriber_id']}"
    body = {"phone_number": harness.new_phone_number()}
    response = await harness.client.put(url, json=body, auth=admin)
    assert response.status_code == 200, response.text


async def test_pin_cannot_be_reset_for_24_hours_after_the_phone_number_changed(
    owner: PinOwner,
) -> None:
    code = await owner.request_code()
    await change_phone_number(owner)
    service = owner.harness.get_service_auth()
    for response in (
        await owner.harness.client.post(f"{owner.url}/reset-pin", auth=service),
        await owner.confirm(code),
    ):
        assert parse_error(response) == (403, "FORBIDDEN")
        assert response.json()["details"]["until"].endswith("Z")
    for table in ("subscribers", "agents"):
        await owner.harness.database.execute(
            f"UPDATE {table} SET phone_number_changed_at = now() - interval '24 hours'"
        )
    # The code was sent to the previous number.
    assert parse_error(await owner.confirm(code)) == (400, "INVALID_OTP")
    assert (await owner.change_pin(owner.pin)).status_code == 200


async def test_code_is_invalid_if_the_phone_number_changes_concurrently(owner: PinOwner) -> None:
    code = await owner.request_code()
    database, table = (
        owner.harness.services.database,
        "agents" if owner.type == "agent" else "subscribers",
    )
    async with database.transaction() as tx:
        # The confirmation has read the number, and waits for the account that this locks.
        await tx.execute("SELECT FROM accounts FOR UPDATE")
        confirmation = asyncio.create_task(owner.confirm(code))
        await wait_for_lock_waiters(owner.harness, 1)
        await tx.execute(
            f"UPDATE {table} SET phone_number = $2 WHERE phone_number = $1",
            owner.phone_number,
            owner.harness.new_phone_number(),
        )
    assert parse_error(await confirmation) == (400, "INVALID_OTP")
    assert (await owner.change_pin(owner.pin)).status_code == 200


async def test_change_requires_a_strong_and_different_pin(owner: PinOwner) -> None:
    for new_pin, field in (("1234", "new_pin"), ("82a4", "new_pin")):
        response = await owner.change_pin(owner.pin, new_pin)
        assert parse_error(response) == (400, "INVALID_REQUEST")
        assert list(response.json()["details"]["fields"]) == [field]
    assert parse_error(await owner.change_pin(owner.pin, owner.pin)) == (400, "SAME_PIN")
    assert (await owner.change_pin(owner.pin)).status_code == 200
    (entry,) = await owner.harness.list_audit_entries(owner.id, f"{owner.type}.pin_changed")
    assert entry["changes"] == {"pin": ["***", "***"]}


async def test_codes_of_a_parent_and_a_child_card_are_separate(harness: Harness) -> None:
    serial, parent = await create_child_card(harness)
    phone_number, service = parent["phone_number"], harness.get_service_auth()
    urls = (f"/api/v1/subscribers/{parent['id']}", f"{CARDS_URL}/{serial}")
    codes = []
    for url in urls:
        assert (await harness.client.post(f"{url}/reset-pin", auth=service)).is_success
        codes.append(await harness.get_pending_code(phone_number))
        harness.advance_clock(minutes=1)
    assert codes[0] != codes[1] or pytest.skip("one in a million: both codes are the same")
    for url, code, status in (
        (urls[1], codes[0], 400),
        (urls[0], codes[1], 400),
        (urls[1], codes[1], 200),
        (urls[0], codes[0], 200),
    ):
        body = {"otp": code, "new_pin": NEW_PIN}
        response = await harness.client.post(f"{url}/reset-pin/confirm", json=body, auth=service)
        assert response.status_code == status, response.text


ACTIONS: list[tuple[str, dict[str, str]]] = [
    ("change-pin", {"old_pin": CHILD_PIN, "new_pin": NEW_PIN}),
    ("reset-pin", {}),
    ("reset-pin/confirm", {"otp": "123456", "new_pin": NEW_PIN}),
]


async def test_only_a_usable_child_card_has_its_own_pin(harness: Harness) -> None:
    serial, parent = await create_child_card(harness)
    own_card, unassigned = await create_card(harness), await create_card(harness)
    await link_card(harness, own_card, parent["id"])
    await block_card(harness, serial, "lost")
    expected = {
        own_card: (422, "VALIDATION_FAILED"),
        unassigned: (409, "CARD_NOT_LINKED"),
        serial: (400, "PERMANENT_BLOCK"),
        "NONE": (404, "CARD_NOT_FOUND"),
    }
    for card, error in expected.items():
        for action, body in ACTIONS:
            response = await harness.client.post(
                f"{CARDS_URL}/{card}/{action}", json=body, auth=harness.get_service_auth()
            )
            assert parse_error(response) == error, (card, action)


async def test_wrong_pins_of_a_child_card_are_counted_across_channels(harness: Harness) -> None:
    serial, parent = await create_child_card(harness, balance="50")
    owner = PinOwner(
        harness, "card", serial, f"{CARDS_URL}/{serial}", parent["phone_number"], CHILD_PIN
    )
    for remaining in (2, 1):
        response = await owner.change_pin(WRONG_PIN)
        assert response.json()["details"] == {"attempts_remaining": remaining}
    assert (await pay_by_card(harness, serial, "1.00", WRONG_PIN)).code == "INVALID_PIN"
    assert parse_error(await owner.change_pin(CHILD_PIN)) == (403, "ACCOUNT_LOCKED")
    assert (await pay_by_card(harness, serial, "1.00", CHILD_PIN)).code == "ACCOUNT_LOCKED"
    await owner.confirm(await owner.request_code())
    (await pay_by_card(harness, serial, "1.00", NEW_PIN)).require_accepted()


async def test_pin_of_a_blocked_child_card_can_be_reset(harness: Harness) -> None:
    serial, parent = await create_child_card(harness)
    await block_card(harness, serial)
    owner = PinOwner(
        harness, "card", serial, f"{CARDS_URL}/{serial}", parent["phone_number"], CHILD_PIN
    )
    assert (await owner.confirm(await owner.request_code())).status_code == 200


async def test_pin_of_a_terminated_agent_cannot_be_reset(harness: Harness) -> None:
    agent = await create_agent(harness)
    admin = await harness.create_admin()
    await harness.client.post(
        f"{AGENTS_URL}/{agent['id']}/terminate", json={"reason": "left"}, auth=admin
    )
    for action, body in ACTIONS:
        response = await harness.client.post(
            f"{AGENTS_URL}/{agent['id']}/{action}", json=body, auth=admin
        )
        assert parse_error(response) == (409, "NOT_CLOSABLE"), action
