"""Chosen languages are stored at the gateway, without the conversation waiting for it."""

from typing import Any

import httpx2
import msgspec
import pytest

from builders.auth import FakeClock
from drivers.gateway_requests import UnreachableTransport, open_gateway
from drivers.in_process import AppTransport
from harness import Harness
from tapgate.messenger import people
from tapgate.messenger.language_sync import LanguageSync
from tapgate.server.gateway import create_app


class SyncFixture:
    def __init__(self, harness: Harness) -> None:
        self.harness, self.clock = harness, FakeClock()
        self.database = harness.services.database
        self.reachable = AppTransport(create_app(harness.services))

    async def choose(self, address: str, language: str, **fields: Any) -> None:
        before = await people.load_person(self.database, address)
        after = msgspec.structs.replace(before, language=language, **fields)
        async with self.database.transaction() as tx:
            await people.save_person(tx, before, after, self.clock())

    async def store(self, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        secret = self.harness.services.settings.service_secrets["messenger"]
        gateway = open_gateway(transport or self.reachable, secret)
        await LanguageSync(self.database, gateway, self.clock).store_due()

    async def get_language(self, record: dict[str, Any]) -> str:
        response = await self.harness.client.get(
            f"/api/v1/subscribers/{record['id']}", auth=self.harness.get_service_auth()
        )
        return str(response.json()["language"])

    async def count_due(self) -> int:
        count: int = await self.database.fetchval(
            "SELECT count(*) FROM messenger.people WHERE language_due_at IS NOT NULL"
        )
        return count


@pytest.fixture
def sync(harness: Harness) -> SyncFixture:
    return SyncFixture(harness)


async def test_chosen_language_is_stored_once(sync: SyncFixture) -> None:
    record = await sync.harness.create_subscriber()
    await sync.choose(record["phone_number"], "fr")
    await sync.store()
    assert (await sync.get_language(record), await sync.count_due()) == ("fr", 0)
    # Changing another field, or choosing the same language, sends nothing.
    await sync.choose(record["phone_number"], "fr", trusted=False)
    assert await sync.count_due() == 0
    await sync.choose(record["phone_number"], "en", trusted=True)
    await sync.store()
    assert await sync.get_language(record) == "en"
    entries = await sync.harness.list_audit_entries(record["id"], "subscriber.updated")
    assert [entry["changes"] for entry in entries] == [
        {"language": ["en", "fr"]},
        {"language": ["fr", "en"]},
    ]


async def test_language_is_stored_when_the_gateway_is_back(sync: SyncFixture) -> None:
    record = await sync.harness.create_subscriber()
    await sync.choose(record["phone_number"], "fr")
    await sync.store(UnreachableTransport())
    await sync.store()  # still leased
    assert (await sync.get_language(record), await sync.count_due()) == ("en", 1)
    sync.clock.advance(minutes=1)
    await sync.store()
    assert (await sync.get_language(record), await sync.count_due()) == ("fr", 0)


async def test_language_of_a_hidden_number_is_stored_after_its_verification(
    sync: SyncFixture,
) -> None:
    record = await sync.harness.create_subscriber()
    await sync.choose("user:ada", "fr")
    await sync.store()
    assert (await sync.get_language(record), await sync.count_due()) == ("en", 1)
    await sync.choose("user:ada", "fr", phone=record["phone_number"])
    await sync.store()
    assert (await sync.get_language(record), await sync.count_due()) == ("fr", 0)


async def test_language_of_an_untrusted_person_is_not_stored(sync: SyncFixture) -> None:
    record = await sync.harness.create_subscriber()
    await sync.choose(record["phone_number"], "fr", trusted=False)
    await sync.store()
    assert await sync.get_language(record) == "en"
    await sync.choose(record["phone_number"], "fr", trusted=True)
    await sync.store()
    assert await sync.get_language(record) == "fr"


async def test_unregistered_and_closed_people_are_skipped(sync: SyncFixture) -> None:
    closed, active = [await sync.harness.create_subscriber() for _ in range(2)]
    response = await sync.harness.client.post(
        f"/api/v1/subscribers/{closed['id']}/close",
        json={"reason": "moved"},
        auth=await sync.harness.create_admin(),
    )
    assert response.status_code == 200
    for address in ("+23276999999", closed["phone_number"], active["phone_number"]):
        await sync.choose(address, "fr")
    await sync.store()
    assert (await sync.get_language(active), await sync.count_due()) == ("fr", 0)
