"""Transactions of restricted subscribers: masked for admins, hidden from API keys."""

from typing import Any

import pytest

from builders.payments import create_processor, submit_and_get_id, submit_refund
from drivers.csv_files import read_records
from harness import PIN, BearerAuth, Harness
from tapgate.ledger import chart

URL = "/api/v1/transactions"


class MaskedTransactions:
    """A restricted subscriber's transactions among other transactions."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.restricted_subscriber: dict[str, Any] = {}
        self.other_subscriber: dict[str, Any] = {}
        self.card = self.processor = self.sent = self.received = self.paid = self.refunded = ""
        self.declined = ""

    async def create_transactions(self) -> None:
        harness = self.harness
        self.restricted_subscriber = await harness.create_restricted_subscriber(
            balance="300", first_name="Zebulonia"
        )
        self.other_subscriber, self.processor = (
            await harness.create_subscriber(balance="100"),
            await create_processor(harness),
        )
        self.card = await harness.create_card(self.restricted_subscriber["id"])
        self.sent = await submit_and_get_id(
            harness,
            chart.TRANSFER_P2P,
            self.restricted_subscriber["id"],
            self.other_subscriber["id"],
            "10",
        )
        await submit_and_get_id(
            harness, chart.TRANSFER_P2P, self.other_subscriber["id"], await self.create_card(), "5"
        )
        self.received = await submit_and_get_id(
            harness, chart.TRANSFER_P2P, self.other_subscriber["id"], self.card, "20"
        )
        self.paid = await submit_and_get_id(
            harness, chart.POS_PAYMENT, self.card, self.processor, "40"
        )
        self.refunded = await submit_refund(harness, self.paid, self.processor, "8")
        body = {
            "request_id": "too much",
            "sender_id": self.restricted_subscriber["id"],
            "recipient_card_serial": await harness.create_card(self.other_subscriber["id"]),
            "amount": "7000",
            "pin": PIN,
            "memo": "Zebulonia's rent",
        }
        url = "/api/v1/wallet/transfer-p2p"
        response = await harness.post(url, json=body, auth=harness.get_service_auth())
        assert response.status_code == 402
        (newest, *_) = await self.list_all(harness.get_service_auth())
        self.declined = newest["id"]

    async def create_card(self) -> str:
        return await self.harness.create_card((await self.harness.create_subscriber())["id"])

    async def get_page(self, caller: Any, url: str = URL, **query: Any) -> dict[str, Any]:
        response = await self.harness.get(url, params=query, auth=caller)
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    async def list_all(self, caller: Any, *, limit: int = 2) -> list[dict[str, Any]]:
        """Return the whole list, fetched page by page."""
        page = await self.get_page(caller, limit=limit)
        rows = list(page["data"])
        while page["has_more"]:
            page = await self.get_page(caller, limit=limit, cursor=page["next_cursor"])
            rows += page["data"]
            assert page.get("masked", False) is any(row.get("masked") for row in page["data"])
        return rows

    @property
    def restricted_ids(self) -> set[str]:
        return {self.sent, self.received, self.paid, self.refunded, self.declined}

    async def create_verified_admin(self, role: str = "A") -> BearerAuth:
        admin = await self.harness.create_admin(role)
        url = f"/api/v1/subscribers/{self.restricted_subscriber['id']}/restricted-access"
        await self.harness.post(url, auth=admin)
        code = await self.harness.get_pending_code(self.restricted_subscriber["phone_number"])
        response = await self.harness.post(f"{url}/verify", json={"otp": code}, auth=admin)
        assert response.status_code == 200, response.text
        return admin


@pytest.fixture
async def masked_transactions(harness: Harness) -> MaskedTransactions:
    masked_transactions = MaskedTransactions(harness)
    await masked_transactions.create_transactions()
    return masked_transactions


@pytest.mark.parametrize("role", ["A", "C", "S", "F"])
async def test_admins_see_every_transaction_with_restricted_ones_masked(
    masked_transactions: MaskedTransactions, role: str
) -> None:
    unmasked = await masked_transactions.list_all(masked_transactions.harness.get_service_auth())
    listed = await masked_transactions.list_all(
        await masked_transactions.harness.create_admin(role)
    )
    assert [row["id"] for row in listed] == [row["id"] for row in unmasked]
    assert [row["amount"] for row in listed] == [row["amount"] for row in unmasked]
    masked = {row["id"] for row in listed if row.get("masked")}
    assert masked_transactions.restricted_ids <= masked
    # The remaining masked transaction is the subscriber's initial deposit.
    assert len(masked - masked_transactions.restricted_ids) == 1
    assert all("masked" not in row for row in listed if row["id"] not in masked)


async def test_masked_row_shows_only_the_type_and_id_of_each_party(
    masked_transactions: MaskedTransactions,
) -> None:
    admin = await masked_transactions.harness.create_admin("F")
    rows = {row["id"]: row for row in await masked_transactions.list_all(admin)}
    restricted_party = {"type": "subscriber", "id": masked_transactions.restricted_subscriber["id"]}
    assert rows[masked_transactions.sent]["from"] == restricted_party
    assert rows[masked_transactions.sent]["to"] == {
        "type": "subscriber",
        "id": masked_transactions.other_subscriber["id"],
    }
    assert rows[masked_transactions.paid]["from"] == restricted_party
    assert rows[masked_transactions.paid]["to"] == {
        "type": "processor",
        "id": masked_transactions.processor,
    }
    assert rows[masked_transactions.paid]["processor_id"] == masked_transactions.processor
    found = (
        rows[masked_transactions.paid]["amount"],
        rows[masked_transactions.paid]["refunded_amount"],
    )
    assert found == ("40.00", "8.00")
    for row in (rows[transaction_id] for transaction_id in masked_transactions.restricted_ids):
        assert (row["card_serial"], row["memo"], row["metadata"]) == (None, None, None)
        assert "failure_details" not in row and row["masked"] is True
    assert rows[masked_transactions.declined]["failure_code"] == "INSUFFICIENT_FUNDS"


async def test_counterparty_lists_contain_the_masked_transactions(
    masked_transactions: MaskedTransactions,
) -> None:
    admin = await masked_transactions.harness.create_admin("F")
    rows = {
        row["id"]: row
        for row in (
            await masked_transactions.get_page(
                admin, user_id=masked_transactions.other_subscriber["id"]
            )
        )["data"]
    }
    assert rows[masked_transactions.sent]["masked"] is True
    # The balance belongs to the counterparty.
    found = (
        rows[masked_transactions.sent]["direction"],
        rows[masked_transactions.sent]["balance_after"],
    )
    assert found == ("credit", "110.00")
    for url in (URL, f"/api/v1/processors/{masked_transactions.processor}/transactions"):
        page = await masked_transactions.get_page(
            admin, url, **({"user_id": masked_transactions.processor} if url == URL else {})
        )
        assert {row["id"] for row in page["data"]} == {
            masked_transactions.paid,
            masked_transactions.refunded,
        }
        assert page["masked"] is True and "Zebulonia" not in str(page)


async def test_single_transaction_is_masked_like_its_list_row(
    masked_transactions: MaskedTransactions,
) -> None:
    admin = await masked_transactions.harness.create_admin("C")
    rows = {row["id"]: row for row in await masked_transactions.list_all(admin)}
    for transaction_id in masked_transactions.restricted_ids:
        page = await masked_transactions.get_page(admin, f"{URL}/{transaction_id}")
        assert page == rows[transaction_id]
    entries = await masked_transactions.get_page(admin, f"{URL}/{masked_transactions.sent}/entries")
    assert entries["masked"] is True
    first, fee = entries["entries"]
    for side in (first["debit"], first["credit"], fee["debit"]):
        assert (side["name"], side["balance_after"]) == (None, None)
    assert first["debit"]["holder_id"] == masked_transactions.restricted_subscriber["id"]
    assert fee["credit"]["name"] == "Platform"
    chain = await masked_transactions.get_page(admin, f"{URL}/{masked_transactions.paid}/chain")
    assert [refund["id"] for refund in chain["refunds"]] == [masked_transactions.refunded]
    assert chain["refunds"][0]["masked"] is True and "Zebulonia" not in str(chain)
    chain = await masked_transactions.get_page(admin, f"{URL}/{masked_transactions.refunded}/chain")
    assert chain["original"] == rows[masked_transactions.paid]
    key = await masked_transactions.harness.create_api_key("payments:read")
    visible = {row["id"] for row in await masked_transactions.list_all(key)}
    assert visible and not masked_transactions.restricted_ids & visible
    verified = await masked_transactions.create_verified_admin("F")
    full = await masked_transactions.get_page(verified, f"{URL}/{masked_transactions.declined}")
    assert full["memo"] == "Zebulonia's rent" and "available" in full["failure_details"]


async def test_export_marks_masked_rows(masked_transactions: MaskedTransactions) -> None:
    client = masked_transactions.harness.client
    finance = await masked_transactions.harness.create_admin("F")
    response = await client.get(f"{URL}/export", auth=finance)
    assert response.headers["X-Masked"] == "true"
    rows = {row["id"]: row for row in read_records(response.content)}
    expected = len(
        await masked_transactions.list_all(masked_transactions.harness.get_service_auth())
    )
    assert len(rows) == expected
    for row in (rows[transaction_id] for transaction_id in masked_transactions.restricted_ids):
        assert row["masked"] == "true" and row["from_id"] and row["to_id"]
        hidden = ("from_name", "to_name", "card_serial", "memo")
        assert [row[name] for name in hidden] == ["", "", "", ""]
    found = {
        row["masked"]
        for transaction_id, row in rows.items()
        if transaction_id not in masked_transactions.restricted_ids
    }
    assert found == {"", "true"}
    key = await masked_transactions.harness.create_api_key("payments:read")
    for auth in (key, await masked_transactions.create_verified_admin()):
        response = await client.get(f"{URL}/export", auth=auth)
        assert "X-Masked" not in response.headers and ",true" not in response.text
    assert masked_transactions.sent in response.text and "Zebulonia Kamara" in response.text
