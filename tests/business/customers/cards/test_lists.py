"""Card lists, search and lookup, and access to cards of restricted subscribers."""

from datetime import timedelta
from typing import Any

from builders.participants import CARDS_URL, create_card, get_card, link_child_card
from harness import Harness
from tapgate.business.customers.cards import queries


async def list_serials(harness: Harness, *, caller: Any = None, **filters: str) -> list[str]:
    response = await harness.get(
        CARDS_URL, params=filters, auth=caller or harness.get_service_auth()
    )
    assert response.status_code == 200, response.text
    return [record["serial"] for record in response.json()["data"]]


async def test_cards_are_paged_newest_first(harness: Harness) -> None:
    holder = await harness.create_subscriber()
    serials = [
        await create_card(harness),
        await harness.create_card(holder["id"]),
        await create_card(harness),
    ]
    response = await harness.get(CARDS_URL, params={"limit": "2"}, auth=harness.get_service_auth())
    page = response.json()
    assert list(page) == ["data", "has_more", "next_cursor"]
    assert page["data"] == [
        await get_card(harness, serials[2]),
        await get_card(harness, serials[1]),
    ]
    assert page["has_more"] is True
    await create_card(harness)
    cursor = {"limit": "2", "cursor": page["next_cursor"]}
    page = (await harness.get(CARDS_URL, params=cursor, auth=harness.get_service_auth())).json()
    assert [record["serial"] for record in page["data"]] == [serials[0]]
    assert (page["has_more"], page["next_cursor"]) == (False, None)


async def test_cards_are_filtered_and_invalid_filters_are_named(harness: Harness) -> None:
    now = harness.services.clock()
    holder, other = await harness.create_subscriber(), await harness.create_subscriber()
    later, before = now + timedelta(days=1), now - timedelta(days=1)
    unassigned = await create_card(harness, expires_at=later)
    active = await harness.create_card(holder["id"], expires_at=later)
    blocked = await harness.create_card(holder["id"], status="BLOCKED")
    lost = await harness.create_card(other["id"], status="LOST", expires_at=before)
    expired = await harness.create_card(other["id"], status="BLOCKED", expires_at=before)
    never_used = await create_card(harness, expires_at=before)
    child = await create_card(harness)
    await link_child_card(harness, child, holder["id"])
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
        assert await list_serials(harness, **filters) == serials, filters
    for status in ("UNASSIGNED", "ACTIVE", "BLOCKED", "LOST", "EXPIRED"):
        for serial in await list_serials(harness, status=status):
            assert (await get_card(harness, serial))["status"] == status
    for name, value in (("status", "active"), ("type", "child"), ("limit", "0"), ("search", "")):
        response = await harness.get(
            CARDS_URL, params={name: value}, auth=harness.get_service_auth()
        )
        assert response.status_code == 422
        assert list(response.json()["details"]["fields"]) == [name]


async def test_search_finds_parts_of_serials_and_uids(harness: Harness) -> None:
    first = await create_card(harness, serial="ACME-0042", uid="04:A2:B3:C4:D5:E6:F7")
    second = await create_card(harness, serial="acme-0043", uid="DE:AD:BE:EF")
    third = await create_card(harness, serial="ZZ9")
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
        assert await list_serials(harness, search=search) == serials, search


async def test_card_is_found_by_serial_or_uid(harness: Harness) -> None:
    database = harness.database
    serial = await create_card(harness, uid="04:A2:B3:C4:D5:E6:F7")
    short_uid_card = await create_card(harness, uid="DE:AD:BE:EF")
    for identifier in (serial, "04:A2:B3:C4:D5:E6:F7", "04-a2-b3-c4-d5-e6-f7", "04a2b3c4d5e6f7"):
        found = await queries.find(database, identifier)
        assert found is not None
        assert found.serial == serial
    for unknown in ("", "NEW-NOT-THERE", "04:A2", "04:A2-B3:C4:D5:E6:F7", serial.lower()):
        assert await queries.find(database, unknown) is None
    serial_like_a_uid = await create_card(harness, serial="DEADBEEF")
    for identifier, expected in (("DEADBEEF", serial_like_a_uid), ("DE:AD:BE:EF", short_uid_card)):
        found = await queries.find(database, identifier)
        assert found is not None
        assert found.serial == expected
