"""Card lists, search and lookup, and access to cards of restricted subscribers."""

from datetime import timedelta
from typing import Any

from cards.builders import CARDS_URL, create_card, get_card, link_child_card, parse_error
from harness import Harness
from tapgate.cards import queries


async def list_serials(world: Harness, *, caller: Any = None, **filters: str) -> list[str]:
    answer = await world.client.get(
        CARDS_URL, params=filters, auth=caller or world.get_service_auth()
    )
    assert answer.status_code == 200, answer.text
    return [record["serial"] for record in answer.json()["data"]]


async def test_cards_are_paged_newest_first(world: Harness) -> None:
    holder = await world.create_subscriber()
    serials = [
        await create_card(world),
        await world.create_card(holder["id"]),
        await create_card(world),
    ]
    answer = await world.client.get(CARDS_URL, params={"limit": "2"}, auth=world.get_service_auth())
    page = answer.json()
    assert list(page) == ["data", "has_more", "next_cursor"]
    assert page["data"] == [await get_card(world, serials[2]), await get_card(world, serials[1])]
    assert page["has_more"] is True
    await create_card(world)
    cursor = {"limit": "2", "cursor": page["next_cursor"]}
    page = (await world.client.get(CARDS_URL, params=cursor, auth=world.get_service_auth())).json()
    assert [record["serial"] for record in page["data"]] == [serials[0]]
    assert (page["has_more"], page["next_cursor"]) == (False, None)


async def test_cards_are_filtered_and_invalid_filters_are_named(world: Harness) -> None:
    now = world.services.clock()
    holder, other = await world.create_subscriber(), await world.create_subscriber()
    later, before = now + timedelta(days=1), now - timedelta(days=1)
    unassigned = await create_card(world, expires_at=later)
    active = await world.create_card(holder["id"], expires_at=later)
    blocked = await world.create_card(holder["id"], status="BLOCKED")
    lost = await world.create_card(other["id"], status="LOST", expires_at=before)
    expired = await world.create_card(other["id"], status="BLOCKED", expires_at=before)
    never_used = await create_card(world, expires_at=before)
    child = await create_card(world)
    await link_child_card(world, child, holder["id"])
    for filters, serials in [
        ({"subscriber_id": holder["id"]}, [child, blocked, active]),
        ({"subscriber_id": "sub_0000000000001"}, []),
        ({"subscriber_id": "sub_0000000000000"}, []),
        ({"status": "UNASSIGNED"}, [unassigned]),
        ({"status": "ACTIVE"}, [child, active]),
        ({"status": "BLOCKED"}, [blocked]),
        ({"status": "LOST"}, [lost]),
        ({"status": "EXPIRED"}, [never_used, expired]),
        ({"type": "CHILD"}, [child]),
        ({"type": "PARENT"}, [expired, lost, blocked, active]),
        ({"type": "PARENT", "status": "ACTIVE", "subscriber_id": holder["id"]}, [active]),
    ]:
        assert await list_serials(world, **filters) == serials, filters
    for status in ("UNASSIGNED", "ACTIVE", "BLOCKED", "LOST", "EXPIRED"):
        for serial in await list_serials(world, status=status):
            assert (await get_card(world, serial))["status"] == status
    for name, value in (("status", "active"), ("type", "child"), ("limit", "0"), ("search", "")):
        answer = await world.client.get(
            CARDS_URL, params={name: value}, auth=world.get_service_auth()
        )
        assert answer.status_code == 422
        assert list(answer.json()["details"]["fields"]) == [name]


async def test_search_finds_parts_of_serials_and_uids(world: Harness) -> None:
    first = await create_card(world, serial="ACME-0042", uid="04:A2:B3:C4:D5:E6:F7")
    second = await create_card(world, serial="acme-0043", uid="DE:AD:BE:EF")
    third = await create_card(world, serial="ZZ9")
    for search, serials in [
        ("acme", [second, first]),
        ("ACME-004", [second, first]),
        ("0043", [second]),
        ("acme 43", [second]),
        ("b3:c4:d5", [first]),
        ("B3-C4-D5", [first]),
        ("b3c4d5", [first]),
        ("04:a2:b3:c4:d5:e6:f7", [first]),
        ("deadbeef", [second]),
        ("acme beef", [second]),
        ("zz9", [third]),
        ("%%%", []),
        ("acm_", []),
        ("nothing", []),
        ("acme :", []),
    ]:
        assert await list_serials(world, search=search) == serials, search


async def test_search_uses_the_index(world: Harness) -> None:
    await world.services.database.execute(
        """INSERT INTO cards (id, serial, status, created_at, updated_at)
           SELECT n, 'BULK-' || md5(n::text), 'UNASSIGNED', now(), now()
           FROM generate_series(1, 5000) n"""
    )
    await world.services.database.execute("VACUUM ANALYZE cards")
    plan = await world.services.database.fetch(
        """EXPLAIN SELECT FROM cards c
           WHERE strpos(card_words(c.serial, c.uid), 'ABCDEF') > 0
             AND trigrams(card_words(c.serial, c.uid)) @> trigrams('ABCDEF')"""
    )
    assert any("cards_search" in row[0] for row in plan), plan


async def test_card_is_found_by_serial_or_uid(world: Harness) -> None:
    database = world.services.database
    serial = await create_card(world, uid="04:A2:B3:C4:D5:E6:F7")
    short = await create_card(world, uid="DE:AD:BE:EF")
    for identifier in (
        serial,
        "04:A2:B3:C4:D5:E6:F7",
        "04-a2-b3-c4-d5-e6-f7",
        "04a2b3c4d5e6f7",
    ):
        found = await queries.find(database, identifier)
        assert found is not None
        assert found.serial == serial
    for nothing in ("", "NEW-NOT-THERE", "04:A2", "04:A2-B3:C4:D5:E6:F7", serial.lower()):
        assert await queries.find(database, nothing) is None
    looks_like_a_uid = await create_card(world, serial="DEADBEEF")
    for identifier, expected in (("DEADBEEF", looks_like_a_uid), ("DE:AD:BE:EF", short)):
        found = await queries.find(database, identifier)
        assert found is not None
        assert found.serial == expected


async def test_cards_of_restricted_subscribers_are_forbidden_and_not_listed(world: Harness) -> None:
    restricted, holder = await world.create_restricted_subscriber(), await world.create_subscriber()
    closed, open_card = (
        await world.create_card(restricted["id"]),
        await world.create_card(holder["id"]),
    )
    nobodys = await create_card(world)
    for caller in (
        await world.create_api_key("cards:read"),
        *[await world.create_admin(r) for r in "ACSF"],
    ):
        assert await list_serials(world, caller=caller) == [nobodys, open_card]
        assert await list_serials(world, caller=caller, subscriber_id=restricted["id"]) == []
        answer = await world.client.get(f"{CARDS_URL}/{closed}", auth=caller)
        assert parse_error(answer) == (403, "OTP_REQUIRED")
        assert (await world.client.get(f"{CARDS_URL}/{nobodys}", auth=caller)).status_code == 200
    assert await list_serials(world) == [nobodys, open_card, closed]
    admin = await world.create_admin("F")
    url = f"/api/v1/subscribers/{restricted['id']}/restricted-access"
    await world.client.post(url, auth=admin)
    code = await world.get_pending_code(restricted["phone_number"])
    await world.client.post(f"{url}/verify", json={"otp": code}, auth=admin)
    assert await list_serials(world, caller=admin) == [nobodys, open_card, closed]
    assert (await world.client.get(f"{CARDS_URL}/{closed}", auth=admin)).status_code == 200
