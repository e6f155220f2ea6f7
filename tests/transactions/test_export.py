"""Transactions as a file: what the list would show, in rows of a spreadsheet."""

import csv
import io
from typing import Any

import httpx2
import pytest

from field.test_exports import ATTACKS, cells, no_formula
from tapgate import ids
from tapgate.ledger import chart
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate.transactions import export
from tapgate.transactions.export import COLUMNS
from transactions.movements import move, processor, refund, submit
from world import Bearer, World

URL = "/api/v1/transactions"


@pytest.fixture
async def key(world: World) -> Bearer:
    return await world.api_key("payments:read")


async def file(world: World, caller: Any, **filters: Any) -> httpx2.Response:
    answer = await world.client.get(f"{URL}/export", params=filters, auth=caller)
    assert answer.status_code == 200, answer.text
    return answer


def rows(answer: httpx2.Response) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))


def as_cells(record: dict[str, Any]) -> dict[str, str]:
    """What a record of the list is in the file."""
    flat = {column: record.get(column) for column in COLUMNS}
    for side in ("from", "to"):
        party = record[side] or {}
        flat |= {f"{side}_{name}": party.get(name) for name in ("type", "id", "name")}
    return {name: value or "" for name, value in flat.items()}


async def test_the_file_says_what_the_list_says(world: World, key: Bearer) -> None:
    payer, shop = await world.subscriber(balance="1000"), await processor(world)
    friend, card = await world.subscriber(), await world.card(payer["id"])
    context = {"terminal_id": "ter_0000000000001", "merchant_name": "Kamara", "memo": 'a "b", c'}
    request = ScopedIdempotencyKey("test", "order-1", b"")
    paid = await move(
        world, chart.POS_PAYMENT, card, shop, "10", context=context, idempotency_key=request
    )
    await refund(world, paid, shop, "5")
    await submit(world, chart.TRANSFER_P2P, payer["id"], friend["id"], "9000")
    await world.services.database.execute(
        """INSERT INTO cards (id, serial, status, created_at, updated_at)
           VALUES (1, 'TAP-NOBODYS', 'UNASSIGNED', now(), now())"""
    )
    await submit(world, chart.POS_PAYMENT, "TAP-NOBODYS", shop, "10")
    for caller in (key, await world.admin("F")):
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
            made = await file(world, caller, **filters)
            assert rows(made) == [as_cells(record) for record in listed.json()["data"]], filters
            assert made.text.splitlines()[0] == ",".join(COLUMNS)
    assert "Aminata Kamara" in (await file(world, await world.admin("S"))).text
    assert "Aminata Kamara" not in (await file(world, key)).text


async def test_it_is_a_file_with_a_name(world: World, key: Bearer) -> None:
    made = await file(world, key)
    assert made.headers["Content-Type"] == "text/csv; charset=utf-8"
    disposition = made.headers["Content-Disposition"]
    assert disposition.startswith('attachment; filename="transactions-20')
    assert disposition.endswith('.csv"')
    assert "X-Next-Cursor" not in made.headers


async def test_files_go_on_where_the_one_before_ended(
    world: World, key: Bearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_PAGE_SIZE", 2)
    subscriber = await world.subscriber()
    for _ in range(8):
        await world.give(subscriber["id"], "1")
    expected = [row["id"] for row in rows(await file(world, key, user_id=subscriber["id"]))]
    assert len(expected) == 8
    for limit in (1, 2, 3, 4, 7, 8):
        seen: list[str] = []
        cursor: dict[str, str] = {"cursor": ids.encode("cur_", 2**63 - 1)}
        while cursor:
            made = await file(world, key, user_id=subscriber["id"], limit=limit, **cursor)
            assert len(rows(made)) <= limit
            seen += [row["id"] for row in rows(made)]
            following = made.headers.get("X-Next-Cursor")
            cursor = {"cursor": following} if following else {}
            await world.give(subscriber["id"], "1")  # newer than what is exported
        assert [id for id in seen if id in expected] == expected
        assert len(set(seen)) == len(seen)


async def test_no_cell_is_a_formula(world: World, key: Bearer) -> None:
    payer, shop = await world.subscriber(balance="1000"), await processor(world)
    await world.without_compliance_rules()
    card = await world.card(payer["id"])
    for number, text in enumerate(ATTACKS):
        context = dict.fromkeys(("memo", "merchant_name", "transaction_ref", "terminal_id"), text)
        request = ScopedIdempotencyKey("test", f"{text}{number}", b"")
        await move(
            world, chart.POS_PAYMENT, card, shop, "1", context=context, idempotency_key=request
        )
    made = await file(world, key, user_id=payer["id"], type="pos_payment")
    assert len(rows(made)) == len(ATTACKS)
    for separator in (",", ";", "\t"):
        assert all(no_formula(cell) for cell in cells(made.text, separator))


@pytest.mark.parametrize(
    "filters",
    [{"limit": "0"}, {"limit": "50001"}, {"type": "gift"}, {"cursor": "x"}, {"user_id": "x"}],
)
async def test_bad_filters_are_refused(world: World, key: Bearer, filters: dict[str, str]) -> None:
    answer = await world.client.get(f"{URL}/export", params=filters, auth=key)
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_FAILED")
