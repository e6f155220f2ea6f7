"""Transaction CSV export: the same content as the list."""

from typing import Any

import httpx2
import pytest

from builders.payments import create_processor, submit_and_get_id, submit_command, submit_refund
from cases import each
from drivers.csv_files import read_records
from harness import BearerAuth, Harness
from tapgate.business.payments.transactions import export
from tapgate.business.payments.transactions.export import COLUMNS
from tapgate.ledger import chart
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate_client import ids
from tapgate_client.schemas.transactions import TransactionRecord

URL = "/api/v1/transactions"


@pytest.fixture
async def key(harness: Harness) -> BearerAuth:
    return await harness.create_api_key("payments:read")


async def get_csv(harness: Harness, caller: Any, **filters: Any) -> httpx2.Response:
    response = await harness.get(f"{URL}/export", params=filters, auth=caller)
    assert response.status_code == 200, response.text
    return response


def parse_rows(response: httpx2.Response) -> list[dict[str, str]]:
    return read_records(response.content)


def to_csv_row(record: dict[str, Any]) -> dict[str, str]:
    """Convert a list record to its CSV row."""
    flat = {column: record.get(column) for column in COLUMNS}
    for side in ("from", "to"):
        party = record[side] or {}
        flat |= {f"{side}_{name}": party.get(name) for name in ("type", "id", "name")}
    return {name: value or "" for name, value in flat.items()}


def test_new_field_of_a_transaction_is_exported_unless_it_is_excluded() -> None:
    excluded = {
        "from", "to", "direction", "balance_after", "merchant_id", "approval_id",
        "failure_details", "metadata",
    }  # fmt: skip
    assert set(TransactionRecord.__struct_encode_fields__) - set(COLUMNS) == excluded


async def test_export_matches_the_list(harness: Harness, key: BearerAuth) -> None:
    payer = await harness.create_subscriber(balance="1000")
    merchant = await create_processor(harness)
    recipient, card = await harness.create_subscriber(), await harness.create_card(payer["id"])
    context = {"terminal_id": "ter_0000000000001", "merchant_name": "Kamara", "memo": 'a "b", c'}
    request = ScopedIdempotencyKey("test", "order-1", b"")
    payment = await submit_and_get_id(
        harness, chart.POS_PAYMENT, card, merchant, "10", context=context, idempotency_key=request
    )
    await submit_refund(harness, payment, merchant, "5")
    await submit_command(harness, chart.TRANSFER_P2P, payer, recipient, "9000")
    await harness.database.execute(
        """INSERT INTO cards (id, serial, status, created_at, updated_at)
           VALUES (1, 'TAP-UNASSIGNED', 'UNASSIGNED', now(), now())"""
    )
    await submit_command(harness, chart.POS_PAYMENT, "TAP-UNASSIGNED", merchant, "10")
    for caller in (key, await harness.create_admin("F")):
        for filters in (
            {},
            {"user_id": payer["id"]},
            {"user_id": merchant, "type": "refund"},
            {"card_serial": card},
            {"status": "failed"},
            {"from": "2020-01-01", "to": "2020-12-31"},
            {"user_id": "sub_0000000000001"},
        ):
            listed = await harness.get(URL, params=filters, auth=caller)
            exported = await get_csv(harness, caller, **filters)
            expected = [to_csv_row(record) for record in listed.json()["data"]]
            assert parse_rows(exported) == expected, filters
            assert exported.text.splitlines()[0] == "\ufeff" + ",".join(COLUMNS)
    assert "Aminata Kamara" in (await get_csv(harness, await harness.create_admin("S"))).text
    assert "Aminata Kamara" not in (await get_csv(harness, key)).text


async def test_export_is_a_csv_attachment_with_a_file_name(
    harness: Harness, key: BearerAuth
) -> None:
    exported = await get_csv(harness, key)
    assert exported.headers["Content-Type"] == "text/csv; charset=utf-8"
    disposition = exported.headers["Content-Disposition"]
    assert disposition.startswith('attachment; filename="transactions-20')
    assert disposition.endswith('.csv"')
    assert "X-Next-Cursor" not in exported.headers


async def test_export_continues_from_the_cursor(
    harness: Harness, key: BearerAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PAGE_SIZE", 2)
    subscriber = await harness.create_subscriber()
    for _ in range(8):
        await harness.deposit(subscriber["id"], "1")
    expected = [
        row["id"] for row in parse_rows(await get_csv(harness, key, user_id=subscriber["id"]))
    ]
    assert len(expected) == 8
    for limit in (1, 2, 3, 4, 7, 8):
        listed: list[str] = []
        cursor: dict[str, str] = {"cursor": ids.encode("cur_", 2**63 - 1)}
        while cursor:
            exported = await get_csv(harness, key, user_id=subscriber["id"], limit=limit, **cursor)
            assert len(parse_rows(exported)) <= limit
            listed += [row["id"] for row in parse_rows(exported)]
            next_cursor = exported.headers.get("X-Next-Cursor")
            cursor = {"cursor": next_cursor} if next_cursor else {}
            await harness.deposit(subscriber["id"], "1")  # newer than the exported rows
        assert [id for id in listed if id in expected] == expected
        assert len(set(listed)) == len(listed)


@each(
    "filters",
    [{"limit": "0"}, {"limit": "50001"}, {"type": "gift"}, {"cursor": "x"}, {"user_id": "x"}],
)
async def test_export_with_invalid_filters_is_rejected(
    harness: Harness, key: BearerAuth, filters: dict[str, str]
) -> None:
    response = await harness.get(f"{URL}/export", params=filters, auth=key)
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
