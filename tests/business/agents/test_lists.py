"""Agent records, balances and lists."""

from typing import Any

from builders.participants import (
    AGENTS_URL,
    cash_in,
    change_status,
    create_agent,
    create_sub_agent,
    fund_agent,
)
from harness import Harness, parse_error
from tapgate_client import ids

UNKNOWN_IDS = (ids.encode(ids.AGENT, 1), "agt_1", "agt_" + "u" * 13, "acc_0000000000001", "é")


async def test_agents_are_listed_newest_first_in_pages(harness: Harness) -> None:
    records = [await create_agent(harness) for _ in range(5)]
    key = await harness.create_api_key("payments:read")
    listed: list[dict[str, Any]] = []
    query = {"limit": "2"}
    for has_more in (True, True, False):
        page = (await harness.get(AGENTS_URL, params=query, auth=key)).json()
        assert page["has_more"] is has_more
        listed += page["data"]
        query["cursor"] = page["next_cursor"]
    assert page["next_cursor"] is None
    assert listed == records[::-1]


async def test_agents_are_listed_by_name_in_pages(harness: Harness) -> None:
    names = ("mariama Sesay", "Abu Koroma", "Zainab Bah", "Abu Koroma", "Élise Kanu")
    records = [await create_agent(harness, name=name) for name in names]
    key = await harness.create_api_key("payments:read")
    listed: list[dict[str, Any]] = []
    query = {"limit": "2", "order": "name"}
    for has_more in (True, True, False):
        page = (await harness.get(AGENTS_URL, params=query, auth=key)).json()
        assert page["has_more"] is has_more
        listed += page["data"]
        query["cursor"] = page["next_cursor"]
    assert listed == [records[number] for number in (1, 3, 0, 2, 4)]


async def test_agents_are_filtered_by_status_type_and_parent(harness: Harness) -> None:
    parent, suspended, terminated = [await create_agent(harness) for _ in range(3)]
    sub_agent = await create_sub_agent(harness, parent)
    await change_status(harness, suspended, "suspend")
    await change_status(harness, terminated, "terminate")
    key = await harness.create_api_key("payments:read")

    async def list_ids(**query: str) -> list[str]:
        response = await harness.get(AGENTS_URL, params=query, auth=key)
        assert response.status_code == 200, response.text
        return [record["id"] for record in response.json()["data"]]

    assert await list_ids(status="active") == [sub_agent["id"], parent["id"]]
    assert await list_ids(status="suspended") == [suspended["id"]]
    assert await list_ids(status="terminated") == [terminated["id"]]
    assert await list_ids(agent_type="sub_agent") == [sub_agent["id"]]
    assert await list_ids(agent_type="super_agent", status="active") == [parent["id"]]
    assert await list_ids(parent_agent_id=parent["id"]) == [sub_agent["id"]]
    assert await list_ids(parent_agent_id=suspended["id"]) == []
    assert await list_ids(parent_agent_id=ids.encode(ids.AGENT, 1)) == []


async def test_agents_are_searched_by_name_business_phone_and_id(harness: Harness) -> None:
    foday = await create_agent(harness, business_name="Kissy Road Cash 100")
    sia = await create_agent(harness, name="Sia Koroma")
    key = await harness.create_api_key("payments:read")
    for text, expected in (
        ("FODAY", [foday]),
        ("bangura foday", [foday]),
        ("+232", [sia, foday]),
        ("a foday", [foday]),
        ("kissy", [foday]),
        ("koroma kissy", []),
        (sia["phone_number"][-8:], [sia]),
        (f" {sia['id']} ", [sia]),
        (ids.encode(ids.AGENT, 1), []),
        ("100", [foday]),
        ("1%0", []),
        ("kiss_", []),
    ):
        response = await harness.get(AGENTS_URL, params={"search": text}, auth=key)
        assert response.json()["data"] == expected, text
    response = await harness.get(
        AGENTS_URL, params={"search": "foday", "status": "suspended"}, auth=key
    )
    assert response.json()["data"] == []
    response = await harness.get(AGENTS_URL, params={"search": "x" * 256}, auth=key)
    assert parse_error(response) == (422, "VALIDATION_FAILED")


async def test_agents_are_found_by_phone_number_and_part_of_the_address(
    harness: Harness,
) -> None:
    bo = await create_agent(harness, address="12 Tikonko Road, Bo")
    kissy = await create_agent(harness, address="9 Kissy Road 100%, Freetown")
    without_address = await create_agent(harness)
    for query, expected in (
        ({"address": "kissy road"}, [kissy]),
        ({"address": "ROAD"}, [kissy, bo]),
        ({"address": "bo"}, [bo]),
        ({"address": "Road Kissy"}, []),
        ({"address": "0%, f"}, [kissy]),
        ({"address": "Kissy_Road"}, []),
        ({"phone_number": bo["phone_number"]}, [bo]),
        ({"phone_number": without_address["phone_number"]}, [without_address]),
        ({"phone_number": harness.new_phone_number()}, []),
        ({"phone_number": bo["phone_number"], "address": "kissy"}, []),
        ({"address": "road", "status": "suspended"}, []),
    ):
        response = await harness.client.get(
            AGENTS_URL, params=query, auth=harness.get_service_auth()
        )
        assert response.json()["data"] == expected, query
    for query, field in (
        ({"address": "x" * 256}, "address"),
        ({"phone_number": "7"}, "phone_number"),
    ):
        response = await harness.client.get(
            AGENTS_URL, params=query, auth=harness.get_service_auth()
        )
        assert parse_error(response) == (422, "VALIDATION_FAILED")
        assert list(response.json()["details"]["fields"]) == [field]


async def test_balance_shows_float_and_commission(harness: Harness) -> None:
    agent, customer = await create_agent(harness), await harness.create_subscriber()
    await fund_agent(harness, agent, "1000")
    await cash_in(harness, agent, customer, "250")
    key = await harness.create_api_key("balance:read")
    response = await harness.get(f"{AGENTS_URL}/{agent['id']}/balance", auth=key)
    assert response.status_code == 200
    assert response.json() == {
        "agent_id": agent["id"],
        "float_balance": "750.00",
        "commission_balance": "2.50",
        "currency": "SLE",
    }
    record = (
        await harness.get(f"{AGENTS_URL}/{agent['id']}", auth=await harness.create_admin("F"))
    ).json()
    assert (record["float_balance"], record["commission_balance"]) == ("750.00", "2.50")


async def test_unknown_agent_is_not_found(harness: Harness) -> None:
    admin = await harness.create_admin()
    requests: list[tuple[str, str, Any]] = [
        ("GET", "", None),
        ("GET", "/balance", None),
        ("POST", "/fund", {"amount": "5"}),
        ("POST", "/suspend", {"reason": "r"}),
        ("POST", "/activate", None),
        ("POST", "/terminate", {"reason": "r"}),
        ("PUT", "", {"name": "Sia"}),
        ("POST", "/change-pin", {"old_pin": "5927", "new_pin": "4071"}),
        ("POST", "/reset-pin", None),
        ("POST", "/reset-pin/confirm", {"otp": "123456", "new_pin": "4071"}),
        ("POST", "/payout-commission", None),
    ]
    for method, path, body in requests:
        for unknown in UNKNOWN_IDS:
            url = f"{AGENTS_URL}/{unknown}{path}"
            response = await harness.client.request(method, url, json=body, auth=admin)
            assert parse_error(response) == (404, "AGENT_NOT_FOUND"), url
