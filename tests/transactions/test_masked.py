"""Transactions of restricted subscribers: masked for admins, hidden from API keys."""

import csv
import io
from typing import Any

import pytest

from harness import PIN, BearerAuth, Harness
from tapgate.ledger import chart
from transactions.builders import create_processor, submit_and_get_id, submit_refund

URL = "/api/v1/transactions"


class MaskedTransactions:
    """Transactions of a restricted subscriber among other transactions."""

    def __init__(self, world: Harness) -> None:
        self.harness = world
        self.restricted_subscriber: dict[str, Any] = {}
        self.other_subscriber: dict[str, Any] = {}
        self.card = self.processor = self.sent = self.received = self.paid = self.refunded = ""
        self.declined = ""

    async def create_transactions(self) -> None:
        world = self.harness
        self.restricted_subscriber = await world.create_restricted_subscriber(
            balance="300", first_name="Zebulonia"
        )
        self.other_subscriber, self.processor = (
            await world.create_subscriber(balance="100"),
            await create_processor(world),
        )
        self.card = await world.create_card(self.restricted_subscriber["id"])
        self.sent = await submit_and_get_id(
            world,
            chart.TRANSFER_P2P,
            self.restricted_subscriber["id"],
            self.other_subscriber["id"],
            "10",
        )
        await submit_and_get_id(
            world,
            chart.TRANSFER_P2P,
            self.other_subscriber["id"],
            await self.create_subscriber(),
            "5",
        )
        self.received = await submit_and_get_id(
            world, chart.TRANSFER_P2P, self.other_subscriber["id"], self.card, "20"
        )
        self.paid = await submit_and_get_id(
            world, chart.POS_PAYMENT, self.card, self.processor, "40"
        )
        self.refunded = await submit_refund(world, self.paid, self.processor, "8")
        body = {
            "request_id": "too much",
            "sender_id": self.restricted_subscriber["id"],
            "recipient_card_serial": await world.create_card(self.other_subscriber["id"]),
            "amount": "7000",
            "pin": PIN,
            "memo": "Zebulonia's rent",
        }
        url = "/api/v1/wallet/transfer-p2p"
        assert (
            await world.client.post(url, json=body, auth=world.get_service_auth())
        ).status_code == 402
        (newest, *_) = await self.list_all(world.get_service_auth())
        self.declined = newest["id"]

    async def create_subscriber(self) -> str:
        return await self.harness.create_card((await self.harness.create_subscriber())["id"])

    async def get_page(self, caller: Any, url: str = URL, **query: Any) -> dict[str, Any]:
        answer = await self.harness.client.get(url, params=query, auth=caller)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def list_all(self, caller: Any, *, limit: int = 2) -> list[dict[str, Any]]:
        """Return the whole list, fetched page by page."""
        page = await self.get_page(caller, limit=limit)
        found = list(page["data"])
        while page["has_more"]:
            page = await self.get_page(caller, limit=limit, cursor=page["next_cursor"])
            found += page["data"]
            assert page.get("masked", False) is any(row.get("masked") for row in page["data"])
        return found

    @property
    def restricted_ids(self) -> set[str]:
        return {self.sent, self.received, self.paid, self.refunded, self.declined}

    async def create_verified_admin(self, role: str = "A") -> BearerAuth:
        admin = await self.harness.create_admin(role)
        url = f"/api/v1/subscribers/{self.restricted_subscriber['id']}/restricted-access"
        await self.harness.client.post(url, auth=admin)
        code = await self.harness.get_pending_code(self.restricted_subscriber["phone_number"])
        answer = await self.harness.client.post(f"{url}/verify", json={"otp": code}, auth=admin)
        assert answer.status_code == 200, answer.text
        return admin


@pytest.fixture
async def books(world: Harness) -> MaskedTransactions:
    books = MaskedTransactions(world)
    await books.create_transactions()
    return books


@pytest.mark.parametrize("role", ["A", "C", "S", "F"])
async def test_admins_see_every_transaction_with_restricted_ones_masked(
    books: MaskedTransactions, role: str
) -> None:
    everything = await books.list_all(books.harness.get_service_auth())
    listed = await books.list_all(await books.harness.create_admin(role))
    assert [row["id"] for row in listed] == [row["id"] for row in everything]
    assert [row["amount"] for row in listed] == [row["amount"] for row in everything]
    masked = {row["id"] for row in listed if row.get("masked")}
    assert books.restricted_ids <= masked
    # The remaining one is the subscriber's initial deposit.
    assert len(masked - books.restricted_ids) == 1
    assert all("masked" not in row for row in listed if row["id"] not in masked)


async def test_masked_row_keeps_only_type_and_id_of_both_parties(books: MaskedTransactions) -> None:
    admin = await books.harness.create_admin("F")
    rows = {row["id"]: row for row in await books.list_all(admin)}
    person = {"type": "subscriber", "id": books.restricted_subscriber["id"]}
    assert rows[books.sent]["from"] == person
    assert rows[books.sent]["to"] == {"type": "subscriber", "id": books.other_subscriber["id"]}
    assert rows[books.paid]["from"] == person
    assert rows[books.paid]["to"] == {"type": "processor", "id": books.processor}
    assert rows[books.paid]["processor_id"] == books.processor
    assert (rows[books.paid]["amount"], rows[books.paid]["refunded_amount"]) == ("40.00", "8.00")
    for row in (rows[one] for one in books.restricted_ids):
        assert (row["card_serial"], row["memo"], row["metadata"]) == (None, None, None)
        assert "failure_details" not in row and row["masked"] is True
    assert rows[books.declined]["failure_code"] == "INSUFFICIENT_FUNDS"


async def test_verified_otp_unmasks_the_rows(books: MaskedTransactions) -> None:
    admin = await books.create_verified_admin("F")
    rows = {row["id"]: row for row in await books.list_all(admin)}
    assert not [row for row in rows.values() if "masked" in row]
    assert rows[books.sent]["from"]["name"] == "Zebulonia Kamara"
    assert rows[books.declined]["memo"] == "Zebulonia's rent"
    assert "available" in rows[books.declined]["failure_details"]
    assert books.restricted_ids <= {row["id"] for row in await books.list_all(admin)}
    own = await books.get_page(admin, user_id=books.restricted_subscriber["id"])
    assert books.restricted_ids <= {row["id"] for row in own["data"]} and "masked" not in own


async def test_api_keys_cannot_read_restricted_transactions(books: MaskedTransactions) -> None:
    key = await books.harness.create_api_key("payments:read")
    assert not books.restricted_ids & {row["id"] for row in await books.list_all(key)}
    history = f"/api/v1/processors/{books.processor}/transactions"
    assert (await books.get_page(key, history))["data"] == []
    for one in books.restricted_ids:
        answer = await books.harness.client.get(f"{URL}/{one}", auth=key)
        assert (answer.status_code, answer.json()["code"]) == (403, "OTP_REQUIRED")


async def test_counterparty_lists_contain_the_masked_transactions(
    books: MaskedTransactions,
) -> None:
    admin = await books.harness.create_admin("F")
    others = {
        row["id"]: row
        for row in (await books.get_page(admin, user_id=books.other_subscriber["id"]))["data"]
    }
    assert others[books.sent]["masked"] is True
    # The balance belongs to the counterparty.
    assert (others[books.sent]["direction"], others[books.sent]["balance_after"]) == (
        "credit",
        "110.00",
    )
    for url in (URL, f"/api/v1/processors/{books.processor}/transactions"):
        shops = await books.get_page(
            admin, url, **({"user_id": books.processor} if url == URL else {})
        )
        assert {row["id"] for row in shops["data"]} == {books.paid, books.refunded}
        assert shops["masked"] is True and "Zebulonia" not in str(shops)


@pytest.mark.parametrize("kind", ["admin", "key"])
async def test_filtering_by_a_restricted_subscriber_requires_an_otp(
    books: MaskedTransactions, kind: str
) -> None:
    world = books.harness
    caller = await (
        world.create_admin("A") if kind == "admin" else world.create_api_key("payments:read")
    )
    for url in (URL, f"{URL}/export", f"/api/v1/processors/{books.processor}/transactions"):
        for filters in (
            {"user_id": books.restricted_subscriber["id"]},
            {"card_serial": books.card},
        ):
            answer = await world.client.get(url, params=filters, auth=caller)
            assert (answer.status_code, answer.json()["code"]) == (403, "OTP_REQUIRED"), url


async def test_single_transaction_is_masked_like_its_list_row(books: MaskedTransactions) -> None:
    admin = await books.harness.create_admin("C")
    rows = {row["id"]: row for row in await books.list_all(admin)}
    for one in books.restricted_ids:
        assert await books.get_page(admin, f"{URL}/{one}") == rows[one]
    entries = await books.get_page(admin, f"{URL}/{books.sent}/entries")
    assert entries["masked"] is True
    first, fee = entries["entries"]
    for side in (first["debit"], first["credit"], fee["debit"]):
        assert (side["name"], side["balance_after"]) == (None, None)
    assert first["debit"]["holder_id"] == books.restricted_subscriber["id"]
    assert fee["credit"]["name"] == "Platform"
    chain = await books.get_page(admin, f"{URL}/{books.paid}/chain")
    assert [one["id"] for one in chain["refunds"]] == [books.refunded]
    assert chain["refunds"][0]["masked"] is True and "Zebulonia" not in str(chain)
    chain = await books.get_page(admin, f"{URL}/{books.refunded}/chain")
    assert chain["original"] == rows[books.paid]


async def test_export_marks_masked_rows(books: MaskedTransactions) -> None:
    client, finance = books.harness.client, await books.harness.create_admin("F")
    answer = await client.get(f"{URL}/export", auth=finance)
    assert answer.headers["X-Masked"] == "true"
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(answer.text, newline=""))}
    assert len(rows) == len(await books.list_all(books.harness.get_service_auth()))
    for row in (rows[one] for one in books.restricted_ids):
        assert row["masked"] == "true" and row["from_id"] and row["to_id"]
        hidden = ("from_name", "to_name", "card_serial", "memo")
        assert [row[name] for name in hidden] == ["", "", "", ""]
    assert {row["masked"] for one, row in rows.items() if one not in books.restricted_ids} == {
        "",
        "true",
    }
    key = await books.harness.create_api_key("payments:read")
    for auth in (key, await books.create_verified_admin()):
        answer = await client.get(f"{URL}/export", auth=auth)
        assert "X-Masked" not in answer.headers and ",true" not in answer.text
    assert books.sent in answer.text and "Zebulonia Kamara" in answer.text
