"""Lists of subscribers: pages, filters and search."""

from typing import Any

from harness import Harness, parse_error

URL = "/api/v1/subscribers"


async def list_subscribers(harness: Harness, **query: Any) -> list[dict[str, Any]]:
    response = await harness.get(URL, params=query, auth=harness.get_service_auth())
    assert response.status_code == 200, response.text
    records: list[dict[str, Any]] = response.json()["data"]
    return records


async def search_names(harness: Harness, search: str) -> list[str]:
    return [record["first_name"] for record in await list_subscribers(harness, search=search)]


async def test_subscribers_are_paged_newest_first(harness: Harness) -> None:
    records = [await harness.create_subscriber() for _ in range(5)]
    listed: list[dict[str, Any]] = []
    query = {"limit": "2"}
    for has_more in (True, True, False):
        page = (await harness.get(URL, params=query, auth=harness.get_service_auth())).json()
        assert list(page) == ["data", "has_more", "next_cursor"]
        assert page["has_more"] is has_more
        listed += page["data"]
        query["cursor"] = page["next_cursor"]
    assert page["next_cursor"] is None
    assert listed == records[::-1]


async def test_subscribers_are_listed_by_name_in_pages(harness: Harness) -> None:
    names = (("Mariama", "Sesay"), ("abu", "Koroma"), ("Abu", "Bah"), ("Abu", "Koroma"))
    records = [
        await harness.create_subscriber(first_name=first, last_name=last) for first, last in names
    ]
    for filters in ({}, {"status": "ACTIVE"}, {"kyc_status": "NONE"}, {"search": "+23"}):
        listed: list[dict[str, Any]] = []
        query = {"limit": "2", "order": "name", **filters}
        for has_more in (True, False):
            page = (await harness.get(URL, params=query, auth=harness.get_service_auth())).json()
            assert page["has_more"] is has_more
            listed += page["data"]
            query["cursor"] = page["next_cursor"]
        assert listed == [records[number] for number in (2, 1, 3, 0)], filters


async def test_cursor_does_not_reveal_the_name_of_a_restricted_subscriber(
    harness: Harness,
) -> None:
    restricted = await harness.create_restricted_subscriber()
    query = {"order": "name", "cursor": restricted["id"].replace("sub_", "cur_")}
    response = await harness.get(URL, params=query, auth=await harness.create_admin("S"))
    assert parse_error(response) == (422, "VALIDATION_FAILED")


async def test_pages_are_stable_during_new_registrations(harness: Harness) -> None:
    existing_ids = [(await harness.create_subscriber())["id"] for _ in range(6)]
    listed: list[str] = []
    query = {"limit": "2"}
    while True:
        page = (await harness.get(URL, params=query, auth=harness.get_service_auth())).json()
        listed += [record["id"] for record in page["data"]]
        if not page["has_more"]:
            break
        query["cursor"] = page["next_cursor"]
        await harness.create_subscriber()
    assert listed == existing_ids[::-1]


async def test_subscribers_are_filtered(harness: Harness) -> None:
    plain, blocked, verified = [await harness.create_subscriber() for _ in range(3)]
    admin = await harness.create_admin()
    await harness.post(f"{URL}/{blocked['id']}/block", json={"reason": "r"}, auth=admin)
    await harness.put(f"{URL}/{verified['id']}", json={"kyc_level": 2}, auth=admin)

    async def list_ids(**query: Any) -> list[str]:
        return [record["id"] for record in await list_subscribers(harness, **query)]

    assert await list_ids(status="BLOCKED") == [blocked["id"]]
    assert await list_ids(status="ACTIVE") == [verified["id"], plain["id"]]
    assert await list_ids(status="CLOSED") == []
    assert await list_ids(kyc_level=2) == [verified["id"]]
    assert await list_ids(phone_number=plain["phone_number"]) == [plain["id"]]
    assert await list_ids(kyc_level=1, status="ACTIVE", search="kamara") == [plain["id"]]


async def test_search_finds_any_part_of_name_phone_and_id_number(harness: Harness) -> None:
    # Fixed phone numbers, so that no generated number matches a search term by accident.
    await harness.create_subscriber(
        first_name="Élodie", last_name="N'Diaye", phone_number="+23276000000"
    )
    record = await harness.create_subscriber(
        first_name="Mohamed",
        last_name="Koroma",
        phone_number="+23277123456",
        id_type="PASSPORT",
        id_number="SLR004711",
    )
    for search in (
        "Mohamed",
        "mohamed",
        "OHAM",
        "orom",
        "mohamed koroma",
        "koroma mohamed",
        "moh kor",
        "+23277123456",
        "7712",
        "slr0047",
        record["id"],
    ):
        assert await search_names(harness, search) == ["Mohamed"], search
    assert await search_names(harness, "élODIE n'diaye") == ["Élodie"]
    assert await search_names(harness, "mohamed diaye") == []
    assert await search_names(harness, record["id"].replace("sub_", "acc_")) == []


async def test_search_has_no_wildcards(harness: Harness) -> None:
    await harness.create_subscriber(first_name="Mohamed")
    for search in ("%%%", "_____", "\\\\\\", "Mo%ed", "' OR true --"):
        assert await search_names(harness, search) == []


async def test_search_reflects_updates(harness: Harness) -> None:
    record = await harness.create_subscriber(first_name="Mohamed")
    await harness.put(
        f"{URL}/{record['id']}", json={"first_name": "Ibrahim"}, auth=await harness.create_admin()
    )
    assert await search_names(harness, "mohamed") == []
    assert await search_names(harness, "ibra") == ["Ibrahim"]
