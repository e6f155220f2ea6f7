"""Import of bank statements over HTTP: what is matched, skipped, refused and reported."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from builders.bank_statements import (
    STATEMENTS_URL,
    build_camt,
    build_camt_entry,
    build_csv,
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
    get_balance,
    get_payout,
    get_platform_balance,
    request_payout,
)
from harness import Harness, parse_error
from tapgate.business.finance.payouts.model import build_reference
from tapgate.business.finance.reconciliation import imports, matching
from tapgate_client.clock import get_platform_day


@pytest.fixture
async def bank(harness: Harness) -> dict[str, Any]:
    """The platform's only verified bank account."""
    return await create_bank_account(harness, None, number="SL0012345678")


def get_day(harness: Harness, days: int = 0) -> str:
    today = get_platform_day(harness.services.clock(), harness.services.settings.timezone)
    return (today + timedelta(days=days)).isoformat()


async def submit_payout(harness: Harness, amount: str) -> dict[str, Any]:
    merchant = await create_merchant(harness)
    payout = await request_payout(harness, merchant, amount=amount)
    await create_run(harness)
    return await get_payout(harness, payout["id"])


async def count_transactions(harness: Harness) -> int:
    count: int = await harness.database.fetchval("SELECT count(*) FROM transactions")
    return count


async def test_statement_pays_and_returns_payouts_by_reference(
    harness: Harness, bank: dict[str, Any]
) -> None:
    payout = await submit_payout(harness, "120")
    day = get_day(harness)
    content = build_csv(
        (day, "120.00", "B-2", f"RETURN {payout['reference']} ACCOUNT CLOSED"),
        (day, "-120.00", "B-1", f"SEPA {payout['reference'][:9]} {payout['reference'][9:]}"),
    )
    record = await import_statement(harness, content)
    assert record["account"] == bank["number"]
    assert (record["format"], record["bank_account_id"]) == ("csv", bank["id"])
    assert (record["from"], record["to"]) == (day, day)
    assert [record[name] for name in ("lines", "matched", "unmatched", "skipped")] == [2, 2, 0, 0]
    payout = await get_payout(harness, payout["id"])
    assert payout["status"] == "returned"
    assert "ACCOUNT CLOSED" in payout["return_reason"]
    assert await get_balance(harness, payout["owner_id"]) == "1000.00"
    assert await get_platform_balance(harness, "payouts_in_transit") == "0.00"
    lines = await list_lines(harness, status="matched")
    assert {line["payout_id"] for line in lines} == {payout["id"]}
    assert len({line["transaction_id"] for line in lines}) == 2
    await require_balanced_books(harness.database)


async def test_file_with_too_many_references_is_refused_off_the_event_loop(
    harness: Harness, bank: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "MAX_REFERENCES", 1)
    find, threads = matching.find_references, set[int]()

    def record_thread(text: str) -> set[str]:
        threads.add(threading.get_ident())
        return find(text)

    monkeypatch.setattr(matching, "find_references", record_thread)
    names = [build_reference((1 << 58) + number) for number in range(2)]
    for reference, status in ((" ".join(names), 422), (names[0], 201)):
        content = build_csv((get_day(harness), "-20.00", reference, "payout"))
        response = await post_statement(harness, content)
        assert response.status_code == status, response.text
        if status == 422:
            assert list(response.json()["details"]["fields"]) == ["file"]
    assert threads
    assert threading.get_ident() not in threads


async def test_amount_and_status_must_agree(harness: Harness, bank: dict[str, Any]) -> None:
    requested = await request_payout(harness, await create_merchant(harness), amount="10")
    content = build_csv(
        (get_day(harness), "-10.00", requested["reference"], "not submitted"),
    )
    assert (await import_statement(harness, content))["unmatched"] == 1
    submitted = await submit_payout(harness, "20")
    content = build_csv(
        (get_day(harness), "-20.01", submitted["reference"], "another amount"),
        (get_day(harness), "20.00", submitted["reference"], "a return before the payment"),
    )
    assert (await import_statement(harness, content))["unmatched"] == 2
    assert (await get_payout(harness, submitted["id"]))["status"] == "submitted"
    content = build_csv((get_day(harness), "-20.00", submitted["reference"], "the amount"))
    matched = await import_statement(harness, content)
    auth = await harness.create_admin("F")
    for value, count in (("true", 2), ("false", 1)):
        response = await harness.get(STATEMENTS_URL, params={"unmatched": value}, auth=auth)
        ids = [row["id"] for row in response.json()["data"]]
        assert len(ids) == count and (matched["id"] in ids) == (value == "false")


async def test_deposit_is_matched_by_its_reference_and_shown_in_the_record(
    harness: Harness, bank: dict[str, Any]
) -> None:
    auth = await harness.create_admin("F")
    agent, partner = await create_agent(harness), (await harness.create_partner()).partner_id
    body = {"amount": "700", "reference": "DEP 17"}
    funded = await harness.post(f"/api/v1/agents/{agent['id']}/fund", json=body, auth=auth)
    url = f"/api/v1/admin/partners/{partner}/fund"
    deposited = await harness.post(url, json={**body, "reference": "DEP-18"}, auth=auth)
    content = build_csv(
        (get_day(harness, -30), "700.00", "dep17", "cash deposit"),
        (get_day(harness), "700.00", "DEP-18", "transfer"),
    )
    assert (await import_statement(harness, content))["matched"] == 2
    lines = await list_lines(harness)
    expected = [funded.json()["transaction_id"], deposited.json()["transaction_id"]]
    assert [line["transaction_id"] for line in lines] == expected
    url = f"/api/v1/transactions/{expected[0]}"
    assert (await harness.get(url, auth=auth)).json()["reference"] == "DEP 17"


async def test_only_candidate_with_the_amount_is_matched_and_two_are_never_guessed(
    harness: Harness, bank: dict[str, Any]
) -> None:
    payout = await submit_payout(harness, "33")
    first, second = await submit_payout(harness, "44"), await submit_payout(harness, "44")
    content = build_csv(
        (get_day(harness, 3), "-33.00", "B-1", "no reference"),
        (get_day(harness), "-44.00", "B-2", "which one?"),
        (get_day(harness, 4), "-55.00", "B-3", "nothing"),
    )
    assert (await import_statement(harness, content))["matched"] == 1
    assert (await get_payout(harness, payout["id"]))["status"] == "paid"
    for each in (first, second):
        assert (await get_payout(harness, each["id"]))["status"] == "submitted"
    late = await submit_payout(harness, "66")
    content = build_csv((get_day(harness, 4), "-66.00", "B-4", "too late"))
    assert (await import_statement(harness, content))["matched"] == 0
    assert (await get_payout(harness, late["id"]))["status"] == "submitted"


async def test_same_statement_twice_is_refused_and_known_lines_are_skipped(
    harness: Harness, bank: dict[str, Any]
) -> None:
    day = get_day(harness)
    fee = (day, "-1.00", "FEE", "monthly fee")
    content = build_csv(fee, (day, "5.00", "", "interest"))
    first = await import_statement(harness, content)
    assert parse_error(await post_statement(harness, content)) == (409, "DUPLICATE_REFERENCE")
    again = await import_statement(harness, build_csv(fee, fee, (day, "5.00", "", "INTEREST")))
    assert (again["lines"], again["skipped"]) == (1, 2)
    assert len(await list_lines(harness)) == 3
    auth = await harness.create_admin("F")
    listed = (await harness.get(STATEMENTS_URL, auth=auth)).json()["data"]
    assert [each["id"] for each in listed] == [again["id"], first["id"]]
    assert listed[0]["account"] == bank["number"][-4:]
    url = f"{STATEMENTS_URL}/{first['id']}"
    assert (await harness.get(url, auth=auth)).json()["account"] == bank["number"]


async def test_request_with_the_same_key_returns_the_same_statement(
    harness: Harness, bank: dict[str, Any]
) -> None:
    content = build_csv((get_day(harness), "-1.00", "FEE", "fee"))
    auth = await harness.create_admin("F")
    first, again = [await post_statement(harness, content, auth, key="s-1") for _ in range(2)]
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (first.json(), "true")
    other = build_csv((get_day(harness), "-2.00", "FEE", "fee"))
    response = await post_statement(harness, other, auth, key="s-1")
    assert parse_error(response) == (409, "DUPLICATE_REQUEST")


async def test_csv_needs_an_account_that_is_clear(harness: Harness) -> None:
    content = build_csv((get_day(harness), "-1.00", "FEE", "fee"))
    response = await post_statement(harness, content)
    assert parse_error(response) == (409, "BANK_ACCOUNT_NOT_VERIFIED")
    accounts = [await create_bank_account(harness, None) for _ in range(2)]
    response = await post_statement(harness, content)
    assert set(response.json()["details"]["accounts"]) == {each["id"] for each in accounts}
    record = await import_statement(harness, content, bank_account_id=accounts[1]["id"])
    assert record["bank_account_id"] == accounts[1]["id"]
    merchant = await create_bank_account(
        harness, await harness.get_processor_id(await harness.create_processor())
    )
    response = await post_statement(harness, content, bank_account_id=merchant["id"])
    assert parse_error(response) == (404, "BANK_ACCOUNT_NOT_FOUND")


async def test_camt_names_its_account_and_must_have_the_currency(harness: Harness) -> None:
    await create_bank_account(harness, None, number="GB33BUKB20201555555555")
    day = get_day(harness)
    entry = build_camt_entry("-7.00", day, "NOTPROVIDED")
    content = build_camt(entry, opening=("100.00", day), closing=("93.00", day))
    record = await import_statement(harness, content)
    assert (record["opening_balance"], record["closing_balance"]) == ("100.00", "93.00")
    assert (record["format"], record["account"]) == ("camt.053", "GB33BUKB20201555555555")
    assert (await list_lines(harness))[0]["reference"] is None
    foreign = build_camt(build_camt_entry("-7.00", day, "X", currency="EUR"))
    response = await post_statement(harness, foreign)
    assert parse_error(response) == (422, "CURRENCY_NOT_SUPPORTED")
    other = await create_bank_account(harness, None)
    response = await post_statement(harness, build_camt(entry), bank_account_id=other["id"])
    assert parse_error(response) == (422, "VALIDATION_FAILED")


@pytest.mark.parametrize("declaration", [
    "<!DOCTYPE Document>",
    '<!DOCTYPE d [<!ENTITY a "b">]>',
    '<!DOCTYPE d [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>',
])  # fmt: skip
async def test_document_type_is_refused_with_its_line(harness: Harness, declaration: str) -> None:
    content = f'<?xml version="1.0"?>\n{declaration}\n<Document/>'
    response = await post_statement(harness, content)
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert response.json()["details"]["line"] == 2


async def test_event_is_sent_once_for_a_statement_with_unmatched_lines(
    harness: Harness, bank: dict[str, Any]
) -> None:
    auth = await harness.create_admin("A")
    body = {"url": "https://erp.example/hook", "events": ["reconciliation.unmatched"]}
    await harness.post("/api/v1/admin/webhook-endpoints", json=body, auth=auth)
    record = await import_statement(harness, build_csv((get_day(harness), "-1.00", "FEE", "fee")))
    await imports.match_statement(
        harness.services, await harness.database.fetchval("SELECT id FROM bank_statements"),
        imports.SYSTEM_ACTOR,
    )  # fmt: skip
    events = await harness.database.fetch("SELECT type, data FROM events")
    assert [event["type"] for event in events] == ["reconciliation.unmatched"]
    assert events[0]["data"]["id"] == record["id"]
    payout = await submit_payout(harness, "5")
    content = build_csv((get_day(harness), "-5.00", payout["reference"], ""))
    await import_statement(harness, content)
    assert await harness.database.fetchval("SELECT count(*) FROM events") == 1


async def test_worker_matches_the_statement_of_a_process_that_stopped(
    harness: Harness, bank: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    payout = await submit_payout(harness, "9")
    content = build_csv((get_day(harness), "-9.00", payout["reference"], ""))

    async def stop(*_: object) -> None:
        """Stop as a killed process does."""

    with monkeypatch.context() as patch:
        patch.setattr(imports, "match_statement", stop)
        assert (await import_statement(harness, content))["unmatched"] == 1
    worker = imports.StatementWorker(harness.services)
    await worker.finish_statements()
    assert (await get_payout(harness, payout["id"]))["status"] == "submitted"
    harness.advance_clock(minutes=6)
    await worker.finish_statements()
    assert (await get_payout(harness, payout["id"]))["status"] == "paid"


async def test_parallel_imports_store_a_statement_once(
    harness: Harness, bank: dict[str, Any]
) -> None:
    payouts = [await submit_payout(harness, f"{amount}") for amount in (11, 12, 13)]
    content = build_csv(
        *((get_day(harness), f"-{each['amount']}", each["reference"], "") for each in payouts)
    )
    auth = await harness.create_admin("F")
    before = await count_transactions(harness)
    responses = await asyncio.gather(*(post_statement(harness, content, auth) for _ in range(6)))
    codes = sorted(response.status_code for response in responses)
    assert codes == [201, 409, 409, 409, 409, 409]
    assert await count_transactions(harness) == before + 3
    assert len(await list_lines(harness)) == 3
    assert {line["status"] for line in await list_lines(harness)} == {"matched"}
    for payout in payouts:
        response = await change_payout(harness, payout["id"], "paid")
        assert parse_error(response) == (409, "PAYOUT_NOT_PENDING")
    await require_balanced_books(harness.database)
