"""CSV export of transactions: the same content as the list."""

import csv
import io
from typing import Any

import httpx2
import pytest

from field.test_exports import FORMULA_PAYLOADS, is_safe_cell, split_cells
from harness import BearerAuth, Harness
from tapgate import ids
from tapgate.ledger import chart
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate.transactions import export
from tapgate.transactions.export import COLUMNS
from transactions.builders import create_processor, submit_and_get_id, submit_command, submit_refund

URL = "/api/v1/transactions"


@pytest.fixture
async def key(world: Harness) -> BearerAuth:
    return await world.create_api_key("payments:read")


async def get_csv(world: Harness, caller: Any, **filters: Any) -> httpx2.Response:
    answer = await world.client.get(f"{URL}/export", params=filters, auth=caller)
    assert answer.status_code == 200, answer.text
    return answer


def parse_rows(answer: httpx2.Response) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))


def to_csv_row(record: dict[str, Any]) -> dict[str, str]:
    """Convert a record of the list to its CSV row."""
    flat = {column: record.get(column) for column in COLUMNS}
    for side in ("from", "to"):
        party = record[side] or {}
        flat |= {f"{side}_{name}": party.get(name) for name in ("type", "id", "name")}
    return {name: value or "" for name, value in flat.items()}


async def test_export_matches_the_list(world: Harness, key: BearerAuth) -> None:
    payer, shop = await world.create_subscriber(balance="1000"), await create_processor(world)
    friend, card = await world.create_subscriber(), await world.create_card(payer["id"])
    context = {"terminal_id": "ter_0000000000001", "merchant_name": "Kamara", "memo": 'a "b", c'}
    request = ScopedIdempotencyKey("test", "order-1", b"")
    paid = await submit_and_get_id(
        world, chart.POS_PAYMENT, card, shop, "10", context=context, idempotency_key=request
    )
    await submit_refund(world, paid, shop, "5")
    await submit_command(world, chart.TRANSFER_P2P, payer["id"], friend["id"], "9000")
    await world.services.database.execute(
        """INSERT INTO cards (id, serial, status, created_at, updated_at)
           VALUES (1, 'TAP-NOBODYS', 'UNASSIGNED', now(), now())"""
    )
    await submit_command(world, chart.POS_PAYMENT, "TAP-NOBODYS", shop, "10")
    for caller in (key, await world.create_admin("F")):
        for filters in (
            {},
            {"user_id": payer["id"]},
            {"user_id": shop, "type": "refund"},
            {"card_serial": card},
            {"status": "failed"},
            {"from": "2020-01-01", "to": "2020-12-31"},
            {"user_id": "sub_0000000000001"},
        ):
            listed = await world.client.get(URL, params=filters, auth=caller)
            made = await get_csv(world, caller, **filters)
            assert parse_rows(made) == [to_csv_row(record) for record in listed.json()["data"]], (
                filters
            )
            assert made.text.splitlines()[0] == ",".join(COLUMNS)
    assert "Aminata Kamara" in (await get_csv(world, await world.create_admin("S"))).text
    assert "Aminata Kamara" not in (await get_csv(world, key)).text


async def test_export_is_a_csv_attachment_with_a_file_name(world: Harness, key: BearerAuth) -> None:
    made = await get_csv(world, key)
    assert made.headers["Content-Type"] == "text/csv; charset=utf-8"
    disposition = made.headers["Content-Disposition"]
    assert disposition.startswith('attachment; filename="transactions-20')
    assert disposition.endswith('.csv"')
    assert "X-Next-Cursor" not in made.headers


async def test_export_continues_from_the_cursor(
    world: Harness, key: BearerAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_PAGE_SIZE", 2)
    subscriber = await world.create_subscriber()
    for _ in range(8):
        await world.deposit(subscriber["id"], "1")
    expected = [
        row["id"] for row in parse_rows(await get_csv(world, key, user_id=subscriber["id"]))
    ]
    assert len(expected) == 8
    for limit in (1, 2, 3, 4, 7, 8):
        seen: list[str] = []
        cursor: dict[str, str] = {"cursor": ids.encode("cur_", 2**63 - 1)}
        while cursor:
            made = await get_csv(world, key, user_id=subscriber["id"], limit=limit, **cursor)
            assert len(parse_rows(made)) <= limit
            seen += [row["id"] for row in parse_rows(made)]
            following = made.headers.get("X-Next-Cursor")
            cursor = {"cursor": following} if following else {}
            await world.deposit(subscriber["id"], "1")  # newer than the exported rows
        assert [id for id in seen if id in expected] == expected
        assert len(set(seen)) == len(seen)


async def test_export_cells_cannot_be_formulas(world: Harness, key: BearerAuth) -> None:
    payer, shop = await world.create_subscriber(balance="1000"), await create_processor(world)
    await world.disable_compliance_rules()
    card = await world.create_card(payer["id"])
    for number, text in enumerate(FORMULA_PAYLOADS):
        context = dict.fromkeys(("memo", "merchant_name", "transaction_ref", "terminal_id"), text)
        request = ScopedIdempotencyKey("test", f"{text}{number}", b"")
        await submit_and_get_id(
            world, chart.POS_PAYMENT, card, shop, "1", context=context, idempotency_key=request
        )
    made = await get_csv(world, key, user_id=payer["id"], type="pos_payment")
    assert len(parse_rows(made)) == len(FORMULA_PAYLOADS)
    for separator in (",", ";", "\t"):
        assert all(is_safe_cell(cell) for cell in split_cells(made.text, separator))


@pytest.mark.parametrize(
    "filters",
    [{"limit": "0"}, {"limit": "50001"}, {"type": "gift"}, {"cursor": "x"}, {"user_id": "x"}],
)
async def test_export_with_invalid_filters_is_rejected(
    world: Harness, key: BearerAuth, filters: dict[str, str]
) -> None:
    answer = await world.client.get(f"{URL}/export", params=filters, auth=key)
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_FAILED")
