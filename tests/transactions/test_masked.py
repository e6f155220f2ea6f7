"""Transactions of restricted subscribers: listed and masked for admins, closed to API keys."""

import csv
import io
from typing import Any

import pytest

from tapgate.ledger import chart
from transactions.movements import move, processor, refund
from world import PIN, Bearer, World

URL = "/api/v1/transactions"


class Books:
    """A restricted subscriber's transactions among others."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.hidden: dict[str, Any] = {}
        self.other: dict[str, Any] = {}
        self.card = self.shop = self.sent = self.received = self.paid = self.given_back = ""
        self.declined = ""

    async def write(self) -> None:
        world = self.world
        self.hidden = await world.restricted_subscriber(balance="300", first_name="Zebulonia")
        self.other, self.shop = await world.subscriber(balance="100"), await processor(world)
        self.card = await world.card(self.hidden["id"])
        self.sent = await move(world, chart.TRANSFER_P2P, self.hidden["id"], self.other["id"], "10")
        await move(world, chart.TRANSFER_P2P, self.other["id"], await self.stranger(), "5")
        self.received = await move(world, chart.TRANSFER_P2P, self.other["id"], self.card, "20")
        self.paid = await move(world, chart.POS_PAYMENT, self.card, self.shop, "40")
        self.given_back = await refund(world, self.paid, self.shop, "8")
        body = {
            "request_id": "too much",
            "sender_id": self.hidden["id"],
            "recipient_card_serial": await world.card(self.other["id"]),
            "amount": "7000",
            "pin": PIN,
            "memo": "Zebulonia's rent",
        }
        url = "/api/v1/wallet/transfer-p2p"
        assert (await world.client.post(url, json=body, auth=world.service())).status_code == 402
        (newest, *_) = await self.all(world.service())
        self.declined = newest["id"]

    async def stranger(self) -> str:
        return await self.world.card((await self.world.subscriber())["id"])

    async def page(self, caller: Any, url: str = URL, **query: Any) -> dict[str, Any]:
        answer = await self.world.client.get(url, params=query, auth=caller)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def all(self, caller: Any, *, limit: int = 2) -> list[dict[str, Any]]:
        """The whole list, page by page."""
        page = await self.page(caller, limit=limit)
        found = list(page["data"])
        while page["has_more"]:
            page = await self.page(caller, limit=limit, cursor=page["next_cursor"])
            found += page["data"]
            assert page.get("masked", False) is any(row.get("masked") for row in page["data"])
        return found

    @property
    def theirs(self) -> set[str]:
        return {self.sent, self.received, self.paid, self.given_back, self.declined}

    async def code_verified(self, role: str = "A") -> Bearer:
        admin = await self.world.admin(role)
        url = f"/api/v1/subscribers/{self.hidden['id']}/restricted-access"
        await self.world.client.post(url, auth=admin)
        code = await self.world.code_sent_to(self.hidden["phone_number"])
        answer = await self.world.client.post(f"{url}/verify", json={"otp": code}, auth=admin)
        assert answer.status_code == 200, answer.text
        return admin


@pytest.fixture
async def books(world: World) -> Books:
    books = Books(world)
    await books.write()
    return books


@pytest.mark.parametrize("role", ["A", "C", "S", "F"])
async def test_admins_get_every_transaction(books: Books, role: str) -> None:
    everything = await books.all(books.world.service())
    listed = await books.all(await books.world.admin(role))
    assert [row["id"] for row in listed] == [row["id"] for row in everything]
    assert [row["amount"] for row in listed] == [row["amount"] for row in everything]
    masked = {row["id"] for row in listed if row.get("masked")}
    assert books.theirs <= masked
    # The last one is the cash that was given to them.
    assert len(masked - books.theirs) == 1
    assert all("masked" not in row for row in listed if row["id"] not in masked)


async def test_a_masked_row_has_type_and_id_of_both_parties(books: Books) -> None:
    admin = await books.world.admin("F")
    rows = {row["id"]: row for row in await books.all(admin)}
    person = {"type": "subscriber", "id": books.hidden["id"]}
    assert rows[books.sent]["from"] == person
    assert rows[books.sent]["to"] == {"type": "subscriber", "id": books.other["id"]}
    assert rows[books.paid]["from"] == person
    assert rows[books.paid]["to"] == {"type": "processor", "id": books.shop}
    assert rows[books.paid]["processor_id"] == books.shop
    assert (rows[books.paid]["amount"], rows[books.paid]["refunded_amount"]) == ("40.00", "8.00")
    for row in (rows[one] for one in books.theirs):
        assert (row["card_serial"], row["memo"], row["metadata"]) == (None, None, None)
        assert "failure_details" not in row and row["masked"] is True
    assert rows[books.declined]["failure_code"] == "INSUFFICIENT_FUNDS"


async def test_a_verified_code_shows_full_rows(books: Books) -> None:
    admin = await books.code_verified("F")
    rows = {row["id"]: row for row in await books.all(admin)}
    assert not [row for row in rows.values() if "masked" in row]
    assert rows[books.sent]["from"]["name"] == "Zebulonia Kamara"
    assert rows[books.declined]["memo"] == "Zebulonia's rent"
    assert "available" in rows[books.declined]["failure_details"]
    assert books.theirs <= {row["id"] for row in await books.all(admin)}
    own = await books.page(admin, user_id=books.hidden["id"])
    assert books.theirs <= {row["id"] for row in own["data"]} and "masked" not in own


async def test_api_keys_do_not_get_them(books: Books) -> None:
    key = await books.world.api_key("payments:read")
    assert not books.theirs & {row["id"] for row in await books.all(key)}
    history = f"/api/v1/processors/{books.shop}/transactions"
    assert (await books.page(key, history))["data"] == []
    for one in books.theirs:
        answer = await books.world.client.get(f"{URL}/{one}", auth=key)
        assert (answer.status_code, answer.json()["code"]) == (403, "OTP_REQUIRED")


async def test_lists_of_the_other_side_have_them(books: Books) -> None:
    admin = await books.world.admin("F")
    others = {
        row["id"]: row for row in (await books.page(admin, user_id=books.other["id"]))["data"]
    }
    assert others[books.sent]["masked"] is True
    # The balance is the other's own.
    assert (others[books.sent]["direction"], others[books.sent]["balance_after"]) == (
        "credit",
        "110.00",
    )
    for url in (URL, f"/api/v1/processors/{books.shop}/transactions"):
        shops = await books.page(admin, url, **({"user_id": books.shop} if url == URL else {}))
        assert {row["id"] for row in shops["data"]} == {books.paid, books.given_back}
        assert shops["masked"] is True and "Zebulonia" not in str(shops)


@pytest.mark.parametrize("kind", ["admin", "key"])
async def test_filters_by_the_subscriber_stay_closed(books: Books, kind: str) -> None:
    world = books.world
    caller = await (world.admin("A") if kind == "admin" else world.api_key("payments:read"))
    for url in (URL, f"{URL}/export", f"/api/v1/processors/{books.shop}/transactions"):
        for filters in ({"user_id": books.hidden["id"]}, {"card_serial": books.card}):
            answer = await world.client.get(url, params=filters, auth=caller)
            assert (answer.status_code, answer.json()["code"]) == (403, "OTP_REQUIRED"), url


async def test_one_transaction_agrees_with_the_list(books: Books) -> None:
    admin = await books.world.admin("C")
    rows = {row["id"]: row for row in await books.all(admin)}
    for one in books.theirs:
        assert await books.page(admin, f"{URL}/{one}") == rows[one]
    entries = await books.page(admin, f"{URL}/{books.sent}/entries")
    assert entries["masked"] is True
    first, fee = entries["entries"]
    for side in (first["debit"], first["credit"], fee["debit"]):
        assert (side["name"], side["balance_after"]) == (None, None)
    assert first["debit"]["holder_id"] == books.hidden["id"]
    assert fee["credit"]["name"] == "Platform"
    chain = await books.page(admin, f"{URL}/{books.paid}/chain")
    assert [one["id"] for one in chain["refunds"]] == [books.given_back]
    assert chain["refunds"][0]["masked"] is True and "Zebulonia" not in str(chain)
    chain = await books.page(admin, f"{URL}/{books.given_back}/chain")
    assert chain["original"] == rows[books.paid]


async def test_an_export_marks_masked_rows(books: Books) -> None:
    client, finance = books.world.client, await books.world.admin("F")
    answer = await client.get(f"{URL}/export", auth=finance)
    assert answer.headers["X-Masked"] == "true"
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(answer.text, newline=""))}
    assert len(rows) == len(await books.all(books.world.service()))
    for row in (rows[one] for one in books.theirs):
        assert row["masked"] == "true" and row["from_id"] and row["to_id"]
        hidden = ("from_name", "to_name", "card_serial", "memo")
        assert [row[name] for name in hidden] == ["", "", "", ""]
    assert {row["masked"] for one, row in rows.items() if one not in books.theirs} == {"", "true"}
    key = await books.world.api_key("payments:read")
    for auth in (key, await books.code_verified()):
        answer = await client.get(f"{URL}/export", auth=auth)
        assert "X-Masked" not in answer.headers and ",true" not in answer.text
    assert books.sent in answer.text and "Zebulonia Kamara" in answer.text
