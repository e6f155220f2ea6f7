"""Changes to statement lines: match, post, ignore and unmatch; parallel changes."""

import asyncio
from typing import Any

import pytest

from builders.bank_statements import (
    LINES_URL,
    build_csv,
    change_line,
    import_statement,
    list_lines,
    post_statement,
)
from builders.ledger import require_balanced_books
from builders.participants import create_agent
from builders.payouts import (
    change_payout,
    create_bank_account,
    create_merchant,
    create_run,
    get_payout,
    get_platform_balance,
    request_payout,
)
from harness import Harness, parse_error

DAY = "2026-01-15"


@pytest.fixture(autouse=True)
async def bank(harness: Harness) -> dict[str, Any]:
    return await create_bank_account(harness, None)


async def create_line(harness: Harness, amount: str, reference: str = "B-1") -> dict[str, Any]:
    """Import a statement with one line, long before everything it could be matched with."""
    await import_statement(harness, build_csv((DAY, amount, reference, "item")))
    return (await list_lines(harness))[-1]


async def submit_payout(harness: Harness, amount: str) -> dict[str, Any]:
    payout = await request_payout(harness, await create_merchant(harness), amount=amount)
    await create_run(harness)
    return await get_payout(harness, payout["id"])


async def fund_agent(harness: Harness, amount: str) -> str:
    agent = await create_agent(harness)
    url = f"/api/v1/agents/{agent['id']}/fund"
    auth = await harness.create_admin("F")
    response = await harness.post(url, json={"amount": amount}, auth=auth)
    transaction_id: str = response.json()["transaction_id"]
    return transaction_id


@pytest.mark.parametrize(("amount", "suspense"), [("25.00", "25.00"), ("-25.00", "-25.00")])
async def test_posted_line_moves_cash_to_suspense_and_back(
    harness: Harness, amount: str, suspense: str
) -> None:
    cash = await get_platform_balance(harness, "cash")
    line = await create_line(harness, amount)
    posted = await change_line(harness, line["id"], "post", reason="Bank fee of January")
    assert (posted.json()["status"], posted.json()["reason"]) == ("posted", "Bank fee of January")
    assert await get_platform_balance(harness, "suspense") == suspense
    url = f"/api/v1/transactions/{posted.json()['transaction_id']}"
    record = (await harness.get(url, auth=await harness.create_admin("F"))).json()
    assert (record["type"], record["amount"], record["memo"], record["reference"]) == (
        "bank_posting", "25.00", "Bank fee of January", "B-1",
    )  # fmt: skip
    reopened = await change_line(harness, line["id"], "unmatch")
    assert (reopened.json()["status"], reopened.json()["transaction_id"]) == ("unmatched", None)
    assert await get_platform_balance(harness, "suspense") == "0.00"
    assert await get_platform_balance(harness, "cash") == cash
    await require_balanced_books(harness.database)


async def test_line_that_is_not_open_cannot_be_changed(harness: Harness) -> None:
    line = await create_line(harness, "10.00")
    assert parse_error(await change_line(harness, line["id"], "unmatch")) == (409, "LINE_NOT_OPEN")
    ignored = await change_line(harness, line["id"], "ignore", reason="Not ours")
    assert ignored.json()["status"] == "ignored"
    for verb, body in (
        ("ignore", {"reason": "again"}),
        ("post", {"reason": "again"}),
        ("match", {"transaction_id": "txn_0000000000001"}),
    ):
        response = await change_line(harness, line["id"], verb, **body)
        assert parse_error(response) == (409, "LINE_NOT_OPEN"), verb
    assert (await change_line(harness, line["id"], "unmatch")).json()["status"] == "unmatched"
    unknown = await change_line(harness, "bsl_0000000000001", "ignore", reason="x")
    assert parse_error(unknown) == (404, "BANK_STATEMENT_NOT_FOUND")
    url = f"{LINES_URL}/bsl_0000000000001/candidates"
    response = await harness.get(url, auth=await harness.create_admin("F"))
    assert parse_error(response) == (404, "BANK_STATEMENT_NOT_FOUND")


async def test_line_that_paid_a_payout_stays_matched(harness: Harness) -> None:
    payout = await submit_payout(harness, "40")
    line = await create_line(harness, "-40.00")
    matched = await change_line(harness, line["id"], "match", payout_id=payout["id"])
    assert (matched.json()["status"], matched.json()["payout_id"]) == ("matched", payout["id"])
    assert (await get_payout(harness, payout["id"]))["status"] == "paid"
    assert parse_error(await change_line(harness, line["id"], "unmatch")) == (409, "LINE_NOT_OPEN")
    line = await create_line(harness, "40.00")
    returned = await change_line(harness, line["id"], "match", payout_id=payout["id"])
    assert returned.json()["status"] == "matched"
    assert (await get_payout(harness, payout["id"]))["status"] == "returned"
    assert parse_error(await change_line(harness, line["id"], "unmatch")) == (409, "LINE_NOT_OPEN")


async def test_payout_that_staff_marked_is_only_linked(harness: Harness) -> None:
    payout = await submit_payout(harness, "40")
    await change_payout(harness, payout["id"], "paid")
    cash = await get_platform_balance(harness, "cash")
    line = await create_line(harness, "-40.00")
    matched = await change_line(harness, line["id"], "match", payout_id=payout["id"])
    assert (matched.json()["status"], matched.json()["payout_id"]) == ("matched", payout["id"])
    assert await get_platform_balance(harness, "cash") == cash
    other = await create_line(harness, "-40.00", "B-2")
    response = await change_line(harness, other["id"], "match", payout_id=payout["id"])
    assert parse_error(response) == (409, "DUPLICATE_REFERENCE")
    assert (await change_line(harness, line["id"], "unmatch")).json()["payout_id"] is None


async def test_payout_that_is_not_submitted_cannot_be_matched(harness: Harness) -> None:
    payout = await request_payout(harness, await create_merchant(harness), amount="40")
    line = await create_line(harness, "-40.00")
    response = await change_line(harness, line["id"], "match", payout_id=payout["id"])
    assert parse_error(response) == (409, "PAYOUT_NOT_PENDING")
    other = await create_line(harness, "-41.00")
    response = await change_line(harness, other["id"], "match", payout_id=payout["id"])
    assert "payout_id" in response.json()["details"]["fields"]
    response = await change_line(harness, line["id"], "match", payout_id="po_0000000000001")
    assert parse_error(response) == (404, "PAYOUT_NOT_FOUND")


async def test_deposit_is_linked_and_belongs_to_one_line(harness: Harness) -> None:
    transaction_id = await fund_agent(harness, "70")
    lines = [await create_line(harness, "70.00", reference) for reference in ("B-1", "B-2")]
    url = f"{LINES_URL}/{lines[0]['id']}/candidates"
    matched = await change_line(harness, lines[0]["id"], "match", transaction_id=transaction_id)
    assert matched.json()["transaction_id"] == transaction_id
    response = await change_line(harness, lines[1]["id"], "match", transaction_id=transaction_id)
    assert parse_error(response) == (409, "DUPLICATE_REFERENCE")
    wrong = await create_line(harness, "71.00")
    response = await change_line(harness, wrong["id"], "match", transaction_id=transaction_id)
    assert "transaction_id" in response.json()["details"]["fields"]
    response = await change_line(harness, wrong["id"], "match", transaction_id="txn_0000000000001")
    assert parse_error(response) == (404, "TRANSACTION_NOT_FOUND")
    listed = (await harness.get(url, auth=await harness.create_admin("F"))).json()
    assert listed["line"]["status"] == "matched"
    await change_line(harness, lines[0]["id"], "unmatch")
    response = await change_line(harness, lines[1]["id"], "match", transaction_id=transaction_id)
    assert response.json()["status"] == "matched"


async def test_candidates_name_what_has_the_amount(harness: Harness) -> None:
    first, second = await submit_payout(harness, "40"), await submit_payout(harness, "40")
    auth = await harness.create_admin("F")
    line = await create_line(harness, "-40.00", second["reference"][:-1])
    response = await harness.get(f"{LINES_URL}/{line['id']}/candidates", auth=auth)
    found = [each["payout_id"] for each in response.json()["data"]]
    assert sorted(found) == sorted([first["id"], second["id"]])
    assert response.json()["line"] == line


async def test_repeated_request_is_executed_once(harness: Harness) -> None:
    auth = await harness.create_admin("F")
    line = await create_line(harness, "30.00")
    for verb, body in (
        ("post", {"reason": "unknown"}),
        ("unmatch", {}),
        ("ignore", {"reason": "mistake"}),
    ):
        first, again = [
            await change_line(harness, line["id"], verb, auth, **body, request_id=f"{verb}-1")
            for _ in range(2)
        ]
        assert first.json() == again.json()
        assert again.headers["Idempotent-Replayed"] == "true"
    response = await change_line(
        harness, line["id"], "ignore", auth, reason="other", request_id="ignore-1"
    )
    assert parse_error(response) == (409, "DUPLICATE_REQUEST")
    assert await get_platform_balance(harness, "suspense") == "0.00"


async def test_match_names_one_target(harness: Harness) -> None:
    line = await create_line(harness, "30.00")
    assert (await change_line(harness, line["id"], "match")).status_code == 400
    response = await change_line(
        harness, line["id"], "match", payout_id="po_1", transaction_id="txn_1"
    )
    assert parse_error(response) == (422, "VALIDATION_FAILED")


async def test_parallel_changes_of_one_line_have_one_winner(harness: Harness) -> None:
    payout = await submit_payout(harness, "40")
    line = await create_line(harness, "-40.00")
    auth = await harness.create_admin("F")
    responses = await asyncio.gather(
        *(
            change_line(harness, line["id"], "match", auth, payout_id=payout["id"])
            for _ in range(4)
        ),
        *(change_line(harness, line["id"], "post", auth, reason="r") for _ in range(4)),
        *(change_line(harness, line["id"], "ignore", auth, reason="r") for _ in range(4)),
    )
    accepted = [response for response in responses if response.status_code == 200]
    assert len(accepted) == 1
    refused = {parse_error(response) for response in responses if response.status_code != 200}
    assert refused == {(409, "LINE_NOT_OPEN")}
    expected = {"matched": "paid"}.get(accepted[0].json()["status"], "submitted")
    assert (await get_payout(harness, payout["id"]))["status"] == expected
    await require_balanced_books(harness.database)


async def test_lines_of_a_parallel_statement_share_no_deposit(harness: Harness) -> None:
    transaction_id = await fund_agent(harness, "15")
    lines = [await create_line(harness, "15.00", f"B-{number}") for number in range(5)]
    auth = await harness.create_admin("F")
    responses = await asyncio.gather(
        *(
            change_line(harness, line["id"], "match", auth, transaction_id=transaction_id)
            for line in lines
        )
    )
    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409, 409]


async def test_saved_mapping_reads_the_columns_of_a_bank(
    harness: Harness, bank: dict[str, Any]
) -> None:
    auth = await harness.create_admin("F")
    url = f"/api/v1/bank-accounts/{bank['id']}/csv-mapping"
    assert parse_error(await harness.get(url, auth=auth)) == (404, "NOT_FOUND")
    content = "Kontoauszug;;\nBuchungstag;Soll;Haben;Verwendungszweck\n15.01.2026;1.234,50;;Miete\n"
    assert (await post_statement(harness, content)).status_code == 422
    mapping = {
        "date": "Buchungstag", "amount": None, "debit": "Soll", "credit": "Haben",
        "reference": None, "description": ["Verwendungszweck"], "date_format": "DD.MM.YYYY",
        "decimal_separator": ",",
    }  # fmt: skip
    saved = await harness.put(url, json=mapping, auth=auth)
    assert saved.json() == (await harness.get(url, auth=auth)).json() == mapping
    await import_statement(harness, content)
    line = (await list_lines(harness))[-1]
    assert (line["date"], line["amount"], line["description"]) == (DAY, "-1234.50", "Miete")
    for wrong in ({"date": "d"}, {"date": "d", "amount": "a", "debit": "b"}):
        assert (await harness.put(url, json=wrong, auth=auth)).status_code in (400, 422)
