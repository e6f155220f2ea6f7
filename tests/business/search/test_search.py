"""Search: what finds a record, who finds it, and that its cost is bounded."""

from typing import Any

import pytest

from builders.participants import create_card
from builders.payments import PosDriver, create_agent, create_partner, create_processor
from harness import Harness
from tapgate.business.payments.transactions.model import (
    calculate_approval_code,
    parse_approval_code,
)
from tapgate.core.phone_numbers import list_phone_prefixes, parse_phone_number
from tapgate_client import ids
from tapgate_client.schemas.search import SearchType

URL = "/api/v1/search"
PHONE = "+23276123456"


async def search(harness: Harness, q: str, role: str = "A", **params: Any) -> list[dict[str, Any]]:
    response = await harness.get(
        URL, params={"q": q, **params}, auth=await harness.create_admin(role)
    )
    assert response.status_code == 200, response.text
    data: list[dict[str, Any]] = response.json()["data"]
    return data


async def find_ids(harness: Harness, q: str, role: str = "A", **params: Any) -> list[str]:
    return [result["id"] for result in await search(harness, q, role, **params)]


async def test_customer_is_found_by_name_phone_and_id(harness: Harness) -> None:
    customer = await harness.create_subscriber(
        phone_number=PHONE, first_name="Aminata Fatu", last_name="Kamara"
    )
    expected = {
        "type": "subscriber",
        "id": customer["id"],
        "title": "Aminata Fatu Kamara",
        "subtitle": PHONE,
        "status": "ACTIVE",
    }
    for text in (
        "am", "AMINATA  fatu kam", "kamara a", "fatu",
        PHONE, "+232 76 123-456", "076 123456", "0761", "23276123456", customer["id"],
    ):  # fmt: skip
        assert await search(harness, text) == [expected], text
    for text in ("a%", "x", "077", "+2327612345699", "sub_0000000000000"):
        assert await search(harness, text) == [], text


async def test_exact_matches_are_first(harness: Harness) -> None:
    """An approval code can also be the beginning of an agent's name."""
    pos = await PosDriver.create(harness)
    code = (await pos.pay()).json()["approval_code"]
    namesake = await create_agent(harness, name=code.lower())
    results = await search(harness, code.lower())
    assert [result["type"] for result in results] == ["transaction", "agent"]
    assert results[1]["id"] == namesake


async def test_transaction_is_found_by_its_receipt(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="20")
    receipt = (await pos.pay("12.50", request_id="R-1", transaction_ref="ORDER-7")).json()
    other = (await pos.pay("1.00", request_id="R-2", transaction_ref="ORDER-7")).json()
    declined = await pos.pay("15.00", request_id="R-3")
    assert declined.status_code != 200
    number = receipt["transaction_id"]
    [result] = await search(harness, receipt["approval_code"], "S")
    assert result["id"] == number and result["status"] == "completed"
    assert result["title"] == "12.50 SLE" and receipt["approval_code"] in result["subtitle"]
    assert await find_ids(harness, number) == await find_ids(harness, "R-1") == [number]
    assert await find_ids(harness, "ORDER-7") == [other["transaction_id"], number]
    assert await find_ids(harness, "ORDER-7", limit=1) == [other["transaction_id"]]
    [failed] = await search(harness, "R-3")
    assert failed["status"] == "failed"
    code = calculate_approval_code(ids.decode(ids.TRANSACTION, failed["id"]) or 0)
    assert failed["id"] not in await find_ids(harness, code)


async def test_sql_and_python_compute_the_same_approval_number(harness: Harness) -> None:
    numbers = [0, 1, 2**62 + 12345, 2**63 - 1, harness.services.new_id()]
    for row in await harness.database.fetch(
        "SELECT id, approval_number(id) AS number FROM unnest($1::bigint[]) AS id", numbers
    ):
        assert parse_approval_code(calculate_approval_code(row["id"])) == row["number"]


async def test_card_is_found_by_serial_and_uid(harness: Harness) -> None:
    customer = await harness.create_subscriber(first_name="Isata", last_name="Bah")
    serial = await harness.create_card(customer["id"], serial="TAP-77001", uid="04:A1:B2:C3")
    unassigned = await create_card(harness, serial="TAP-77002")
    assert await find_ids(harness, "tap-77") == [serial, unassigned]
    for text in ("TAP-77001", "tap-77001", "04a1b2c3", "04-A1-B2-C3"):
        [card] = await search(harness, text)
        assert (card["type"], card["id"], card["subtitle"]) == ("card", serial, "Isata Bah")


async def test_companies_accounts_and_admins_are_found(harness: Harness) -> None:
    agent, partner = await create_agent(harness), await create_partner(harness)
    processor = await create_processor(harness)
    for text, expected in {"conteh": agent, "sierra": partner, "stores": processor}.items():
        assert await find_ids(harness, text) == await find_ids(harness, expected) == [expected]
    accounts = await search(harness, "conteh", types="account")
    assert sorted(account["subtitle"] for account in accounts) == ["commission", "float"]
    [account] = await search(harness, accounts[0]["id"])
    assert account == accounts[0]
    assert [row["subtitle"] for row in await search(harness, "cash", types="account")] == ["cash"]
    admin = await harness.create_admin("C")
    assert await find_ids(harness, admin.id) == [admin.id]


async def test_keys_are_found_by_their_name_or_owner_if_requested(harness: Harness) -> None:
    url, admin = "/api/v1/admin/api-keys", await harness.create_admin()
    body = {"name": "Online store", "scopes": ["cards:read"]}
    shop = (await harness.post(url, json=body, auth=admin)).json()["id"]
    owner = f"/api/v1/processors/{await create_processor(harness)}"
    terminal = (
        await harness.post(f"{owner}/terminals", json={"name": "Till 2"}, auth=admin)
    ).json()
    found = await search(harness, "stores", types="key")
    assert [row["title"].partition(" · ")[2] for row in found] == ["", "Till 2"]
    assert found[1]["id"] == terminal["api_key_id"]
    both = await find_ids(harness, "stor", types="key")
    assert sorted(both) == sorted([shop, *(row["id"] for row in found)])
    assert await find_ids(harness, "online") == []
    assert await find_ids(harness, shop) == [shop]
    assert await find_ids(harness, "online", "C", types="key") == []


@pytest.mark.parametrize(
    ("role", "visible"), [("A", set(SearchType)), ("S", None), ("C", None), ("F", None)]
)
async def test_a_kind_of_record_is_found_by_the_roles_of_its_own_endpoint(
    harness: Harness, role: str, visible: set[str] | None
) -> None:
    """Admins belong to system admins; partners and accounts also to finance, which moves money."""
    await create_partner(harness)
    agent = await create_agent(harness)
    admin = await harness.create_admin(role)
    assert await find_ids(harness, agent, role) == [agent]
    assert bool(await find_ids(harness, "sierra", role)) == (role in "AF")
    assert bool(await find_ids(harness, admin.id, role)) == (visible is not None)
    assert bool(await find_ids(harness, "conteh", role, types="account")) == (role in "AF")


async def test_search_requires_an_admin(harness: Harness) -> None:
    for caller in (await harness.create_api_key("subscribers:read"), harness.get_service_auth()):
        assert (await harness.get(URL, params={"q": "abc"}, auth=caller)).status_code == 403
    admin = await harness.create_admin()
    for params in ({}, {"q": ""}, {"q": "x" * 101}, {"q": "x", "types": "subscriber,secret"}):
        assert (await harness.get(URL, params=params, auth=admin)).status_code == 422


async def test_restricted_customer_is_found_only_by_id_and_without_personal_data(
    harness: Harness,
) -> None:
    pos = await PosDriver.create(harness)
    receipt = (await pos.pay()).json()
    customer, serial = pos.customer, pos.card
    uid = await harness.database.fetchval("SELECT uid FROM cards WHERE serial = $1", serial)
    await harness.database.execute("UPDATE subscribers SET restricted = true")
    for text in (customer["first_name"], customer["last_name"], customer["phone_number"], uid):
        assert await search(harness, text or customer["phone_number"][:8]) == [], text
    [found] = await search(harness, customer["id"])
    assert (found["title"], found["subtitle"]) == ("Restricted subscriber", None)
    [card] = await search(harness, serial)
    assert (card["id"], card["subtitle"]) == (serial, "Restricted subscriber")
    [transaction] = await search(harness, receipt["approval_code"])
    assert customer["last_name"] not in str(transaction)
    accounts = await search(harness, customer["account_id"])
    assert [account["title"] for account in accounts] == ["Restricted subscriber"]


@pytest.mark.parametrize(
    ("text", "country", "number", "prefixes"),
    [
        ("076 123456", "SL", PHONE, [PHONE]),
        ("76123456", "SL", PHONE, [PHONE, "+76123456"]),
        ("0023276123456", None, PHONE, [PHONE]),
        ("23276123456", None, PHONE, [PHONE]),
        ("076123456", None, None, []),
        ("076", "SL", None, []),
        ("+23", "SL", None, []),
        ("aminata", "SL", None, []),
    ],
)
def test_phone_numbers_are_read_as_people_type_them(
    text: str, country: str | None, number: str | None, prefixes: list[str]
) -> None:
    assert parse_phone_number(text, country) == number
    assert list_phone_prefixes(text, country) == prefixes
