"""Statement files: content, links, expiry and limits."""

import asyncio
import re
import resource
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.branding import BRANDING
from builders.payments import submit_and_get_id
from builders.retention import delete_expired
from builders.statements import URL, build_request, build_statement, get_statement
from business.payments.wallets.pdf_text import extract_pages
from cases import each
from drivers.csv_files import read_records
from harness import BearerAuth, Harness, parse_error
from tapgate.business.payments.wallets.statements import csv_file, operations, pdf_file
from tapgate.business.payments.wallets.statements.typesetting import (
    REGULAR,
    replace_missing_glyphs,
    truncate_to_width,
)
from tapgate.http.api.csv_files import escape_formulas
from tapgate.ledger import chart
from tapgate_client import ids

LINE_COUNT = 10_000
COLUMNS = "date transaction_id type description debit credit balance".split()


@pytest.fixture
async def key(harness: Harness) -> BearerAuth:
    return await harness.create_api_key("payments:read")


async def fetch_statement(harness: Harness, response: dict[str, Any]) -> Any:
    """Download by the link alone, without credentials."""
    base = harness.services.settings.public_url
    assert response["statement_url"].startswith(f"{base}/api/v1/statements/")
    return await harness.get(response["statement_url"].removeprefix(base))


@pytest.mark.parametrize("format", ["csv", "pdf"])
async def test_statement_file_can_be_downloaded_by_link_for_24_hours(
    harness: Harness, key: BearerAuth, format: str
) -> None:
    holder = await harness.create_subscriber(balance="1000")
    response = await get_statement(harness, key, holder, format=format)
    assert "entries" not in response
    lifetime = datetime.fromisoformat(response["expires_at"]) - datetime.fromisoformat(
        response["generated_at"]
    )
    assert lifetime == timedelta(hours=24)
    file = await fetch_statement(harness, response)
    assert file.status_code == 200
    expected = {"csv": "text/csv", "pdf": "application/pdf"}[format]
    assert file.headers["Content-Type"].startswith(expected)
    period = response["period"]
    name = f"statement-{period['from']}-{period['to']}.{format}"
    assert file.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    assert file.headers["Cache-Control"] == "no-store"
    await harness.deposit(holder["id"], "5")
    assert (await fetch_statement(harness, response)).content == file.content
    harness.advance_clock(hours=23, minutes=59)
    assert (await fetch_statement(harness, response)).content == file.content
    harness.advance_clock(minutes=2)
    expired = await fetch_statement(harness, response)
    assert (expired.status_code, expired.json()["code"]) == (404, "NOT_FOUND")
    await delete_expired(harness.database, harness.services.clock, "statements")
    assert await harness.database.fetchval("SELECT count(*) FROM statements") == 0


async def set_restricted(
    harness: Harness, holder: dict[str, Any], *, restricted: bool = True
) -> None:
    admin = await harness.create_admin("C")
    url = f"/api/v1/subscribers/{holder['id']}"
    if not restricted:
        await harness.post(f"{url}/restricted-access", auth=admin)
        code = await harness.get_pending_code(holder["phone_number"])
        await harness.post(f"{url}/restricted-access/verify", json={"otp": code}, auth=admin)
    response = await harness.put(url, json={"restricted": restricted}, auth=admin)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("format", ["csv", "pdf"])
async def test_links_are_revoked_when_the_subscriber_becomes_restricted(
    harness: Harness, key: BearerAuth, format: str
) -> None:
    holder = await harness.create_subscriber(balance="1000")
    other = await harness.create_subscriber()
    response = await get_statement(harness, key, holder, format=format)
    other_statement = await get_statement(harness, key, other, format=format)
    await set_restricted(harness, holder)
    revoked = await fetch_statement(harness, response)
    unknown = await harness.get("/api/v1/statements/unknown")
    assert (revoked.status_code, revoked.json()) == (404, unknown.json())
    assert (await fetch_statement(harness, other_statement)).status_code == 200
    # The link to a statement that the subscriber later requests in the chat works.
    new_statement = await get_statement(harness, harness.get_service_auth(), holder, format=format)
    assert (await fetch_statement(harness, new_statement)).status_code == 200
    await set_restricted(harness, holder, restricted=False)
    assert (await fetch_statement(harness, response)).status_code == 404
    assert (await fetch_statement(harness, new_statement)).status_code == 200


async def test_no_link_remains_if_the_subscriber_is_restricted_during_the_request(
    harness: Harness, key: BearerAuth
) -> None:
    """Each concurrent request is rejected, or the restriction deletes its file."""
    holders = [await harness.create_subscriber(balance="10") for _ in range(12)]
    responses = await asyncio.gather(
        *(
            task
            for holder in holders
            for task in (
                harness.post(URL, json=build_request(harness, holder, format="csv"), auth=key),
                set_restricted(harness, holder),
            )
        )
    )
    for response in filter(None, responses):
        if response.status_code == 200:
            assert (await fetch_statement(harness, response.json())).status_code == 404
        else:
            # SERVICE_UNAVAILABLE: on a slow machine, the key has too many expensive reads.
            assert response.json()["code"] in ("OTP_REQUIRED", "SERVICE_UNAVAILABLE")
    assert await harness.database.fetchval("SELECT count(*) FROM statements") == 0


async def test_concurrent_files_of_one_subscriber_do_not_deadlock(harness: Harness) -> None:
    holder = await harness.create_subscriber(balance="10")
    body = build_request(harness, holder, format="csv")
    keys = [await harness.create_api_key("payments:read") for _ in range(4)]
    issued = 0
    for _ in range(5):
        responses = await asyncio.gather(
            *(harness.post(URL, json=body, auth=key) for key in keys * 2)
        )
        statuses = [response.status_code for response in responses]
        # 503: more than four requests are queued for an expensive read.
        assert set(statuses) <= {200, 503}, statuses
        issued += statuses.count(200)
    assert issued > 0
    assert await harness.database.fetchval("SELECT count(*) FROM statements") == issued


async def change_subscriber(harness: Harness, holder: dict[str, Any], change: str) -> None:
    admin, url = await harness.create_admin(), f"/api/v1/subscribers/{holder['id']}"
    if change == "phone_number":
        phone_number = harness.new_phone_number()
        response = await harness.put(url, json={"phone_number": phone_number}, auth=admin)
    else:
        response = await harness.post(f"{url}/{change}", json={"reason": "Lost"}, auth=admin)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("change", ["block", "close", "phone_number"])
async def test_links_end_when_the_subscriber_loses_access(
    harness: Harness, key: BearerAuth, change: str
) -> None:
    holder, other = await harness.create_subscriber(), await harness.create_subscriber()
    statement = await get_statement(harness, key, holder, format="csv")
    other_statement = await get_statement(harness, key, other, format="csv")
    assert (await fetch_statement(harness, statement)).status_code == 200
    await change_subscriber(harness, holder, change)
    assert (await fetch_statement(harness, statement)).status_code == 404
    assert (await fetch_statement(harness, other_statement)).status_code == 200
    if change != "close":  # staff can still get a statement for a blocked wallet
        later = await get_statement(harness, key, holder, format="csv")
        assert (await fetch_statement(harness, later)).status_code == 200
    if change == "block":
        await change_subscriber(harness, holder, "unblock")
        assert (await fetch_statement(harness, statement)).status_code == 404
        assert (await fetch_statement(harness, later)).status_code == 200


@pytest.mark.parametrize(
    "change, code", [("block", "SUBSCRIBER_BLOCKED"), ("phone_number", "SERVICE_UNAVAILABLE")]
)
async def test_lost_access_during_rendering_prevents_the_link(
    harness: Harness, key: BearerAuth, monkeypatch: pytest.MonkeyPatch, change: str, code: str
) -> None:
    holder = await harness.create_subscriber()
    render = operations.rendering_threads.run

    async def render_and_change(*arguments: Any) -> Any:
        content = await render(*arguments)
        await change_subscriber(harness, holder, change)
        return content

    monkeypatch.setattr(operations.rendering_threads, "run", render_and_change)
    response = await harness.post(URL, json=build_request(harness, holder, format="csv"), auth=key)
    assert response.json()["code"] == code
    assert await harness.database.fetchval("SELECT count(*) FROM statements") == 0


async def test_restriction_during_rendering_prevents_the_link(
    harness: Harness, key: BearerAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = await harness.create_subscriber(balance="10")
    render = operations.rendering_threads.run

    async def render_and_restrict(*arguments: Any) -> Any:
        content = await render(*arguments)
        await set_restricted(harness, holder)
        return content

    monkeypatch.setattr(operations.rendering_threads, "run", render_and_restrict)
    response = await harness.post(URL, json=build_request(harness, holder, format="csv"), auth=key)
    assert (response.status_code, response.json()["code"]) == (403, "OTP_REQUIRED")
    assert await harness.database.fetchval("SELECT count(*) FROM statements") == 0


async def test_file_matches_the_response_despite_later_transactions(
    harness: Harness, key: BearerAuth
) -> None:
    holder = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber()
    response = await get_statement(harness, key, holder, format="csv")
    await submit_and_get_id(harness, chart.TRANSFER_P2P, holder, recipient, "100")
    opening, row = read_records((await fetch_statement(harness, response)).content)
    assert (opening["type"], opening["balance"]) == ("opening_balance", "0.00")
    assert row["balance"] == response["closing_balance"] == "1000.00"


async def test_links_are_unguessable_and_stored_files_are_encrypted(
    harness: Harness, key: BearerAuth
) -> None:
    holder = await harness.create_subscriber(balance="1000")
    statements = [await get_statement(harness, key, holder, format="csv") for _ in range(2)]
    tokens = [statement["statement_url"].rpartition("/")[2] for statement in statements]
    assert len(set(tokens)) == 2
    assert min(map(len, tokens)) >= 43
    row = await harness.database.fetchrow("SELECT * FROM statements LIMIT 1")
    assert row is not None
    assert not any(token.encode() in bytes(str(tuple(row)), "utf-8") for token in tokens)
    assert b"transaction_id" not in row["file"]
    for guess in ("x", tokens[0][:-1], statements[0]["statement_id"], "%00", "é"):
        assert parse_error(await harness.get(f"/api/v1/statements/{guess}")) == (404, "NOT_FOUND")


async def test_issuing_a_statement_file_is_audited(harness: Harness, key: BearerAuth) -> None:
    holder = await harness.create_subscriber()
    await get_statement(harness, key, holder, format="pdf")
    (entry,) = await harness.list_audit_entries(holder["id"], "subscriber.statement_issued")
    assert (entry["actor"]["id"], entry["result"]) == (key.id, "success")


async def test_json_csv_and_pdf_have_the_same_content(harness: Harness, key: BearerAuth) -> None:
    holder = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber()
    context = {"memo": '=1+1, "quoted"\r\nand more'}
    await submit_and_get_id(harness, chart.TRANSFER_P2P, holder, recipient, "100", context=context)
    entries = (await get_statement(harness, key, holder))["entries"]
    file = await fetch_statement(harness, await get_statement(harness, key, holder, format="csv"))
    opening, *rows = read_records(file.content)
    assert list(opening) == ["date", "time", *COLUMNS[1:], "currency"]
    assert opening == dict.fromkeys(opening, "") | {
        "date": entries[0]["date"], "time": "00:00:00", "type": "opening_balance",
        "description": "Opening balance", "balance": "0.00", "currency": "SLE",
    }  # fmt: skip
    for row in rows:
        assert re.fullmatch(r"\d\d:\d\d:\d\d", row.pop("time"))
        assert row.pop("currency") == "SLE"
        row["debit"] = row["debit"] or "0.00"
        row["credit"] = row["credit"] or "0.00"
    assert rows == [{name: entry[name] for name in COLUMNS} for entry in entries]
    file = await fetch_statement(harness, await get_statement(harness, key, holder, format="pdf"))
    (page,) = extract_pages(file.content)
    for text in ("Aminata Kamara", holder["account_id"], "Opening balance", "898.50", "1.50"):
        assert text in page
    assert page[-1] == "Page 1 of 1"


async def test_statement_with_10000_entries_uses_bounded_memory(
    harness: Harness, key: BearerAuth
) -> None:
    # Simulate outdated planner statistics by analyzing the tables while they are empty.
    await harness.database.execute("ANALYZE transactions, entries, accounts")
    holder = await harness.create_subscriber()
    await _insert_entries(harness, ids.decode(ids.ACCOUNT, holder["account_id"]) or 0)
    response = await get_statement(harness, key, holder)
    assert len(response["entries"]) == LINE_COUNT
    assert response["closing_balance"] == response["entries"][-1]["balance"] == "10000.00"
    response = await get_statement(harness, key, holder, format="csv")
    _, *rows = read_records((await fetch_statement(harness, response)).content)
    assert [row["balance"] for row in (rows[0], rows[-1])] == ["1.00", "10000.00"]
    assert len(rows) == LINE_COUNT
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    response = await get_statement(harness, key, holder, format="pdf")
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    file = await fetch_statement(harness, response)
    pages = extract_pages(file.content)
    assert pages[-1][-1] == f"Page {len(pages)} of {len(pages)}"
    assert "10,000.00" in pages[-1]
    assert growth < 64 * 1024, "memory growth in KiB"


async def _insert_entries(harness: Harness, account_id: int) -> None:
    async with harness.services.transaction() as tx:
        cash = await tx.fetchval("SELECT id FROM accounts WHERE kind = 'cash'")
        first = harness.services.new_id()
        await tx.execute(
            """INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency,
                                         from_account, to_account, created_at, completed_at)
               SELECT $1 + n, 'transfer', 'completed', 'admin', 100, 0, 'SLE', $2, $3, $4, $4
               FROM generate_series(1, $5::bigint) n""",
            first,
            cash,
            account_id,
            harness.services.clock(),
            LINE_COUNT,
            timeout=60,
        )
        await tx.execute(
            """INSERT INTO entries
               SELECT $1 + n, 0, $2::bigint, $3::bigint, 100
               FROM generate_series(1, $4::bigint) n""",
            first,
            cash,
            account_id,
            LINE_COUNT,
            timeout=60,
        )
        await tx.execute(
            "UPDATE accounts SET balance = balance + $2 WHERE id = $1", account_id, LINE_COUNT * 100
        )


@each("count", [0, 1, 22, 23, 24, 51, 52, 53, 54, 200])
def test_every_pdf_page_has_the_operator_column_headers_and_a_page_number(count: int) -> None:
    pages = extract_pages(pdf_file.render(build_statement(count), BRANDING))
    assert len(pages) == pdf_file.count_pages(count)
    for number, page in enumerate(pages, 1):
        assert {"Date", "Description", "Debit", "Credit", "Balance"} <= set(page)
        assert BRANDING.name in page
        assert page[-1] == f"Page {number} of {len(pages)}"
    transaction_ids = [text for page in pages for text in page if text.startswith("txn_")]
    assert len(transaction_ids) == count
    assert len(pages) == 1 or any(text.startswith("txn_") for text in pages[-1])


def test_pdf_rendering_is_deterministic() -> None:
    expected = pdf_file.render(build_statement(60), BRANDING)
    assert pdf_file.render(build_statement(60), BRANDING) == expected


def test_west_african_letters_are_rendered_and_missing_glyphs_replaced() -> None:
    name = "Kɔngɛ Ŋalɛy Ọláṣẹ Ɓah Ɗan"
    (page,) = extract_pages(pdf_file.render(build_statement(0, holder_name=name), BRANDING))
    assert name in page
    assert replace_missing_glyphs("Ḿ日本\n😀é\u202e\0") == "Ḿ?? ?é "
    assert replace_missing_glyphs("\ufb01x ½") == "fix ½"
    (page,) = extract_pages(pdf_file.render(build_statement(0), BRANDING))
    assert "+232*****456" in page


@settings(max_examples=40)
@given(st.text(), st.floats(1, 500))
def test_any_text_is_rendered_and_truncated_to_its_width(text: str, width: float) -> None:
    assert "\n" not in replace_missing_glyphs(text)
    truncated = truncate_to_width(text, REGULAR, 8, width)
    assert truncated == replace_missing_glyphs(text) or truncated.endswith("…")
    movement = build_statement(1).movements[0]._replace(memo=text, counterparty=text)
    statement = build_statement(0, movements=[movement], holder_name=text or "x")
    assert pdf_file.render(statement, BRANDING)


@given(st.text(), st.sampled_from(["", "=", "+", "-", "@", "\t", "\r", "\n", '"', ","]))
def test_any_text_survives_csv_and_cannot_become_a_formula(text: str, start: str) -> None:
    description = start + text
    is_number = re.fullmatch(r"-[0-9]+(\.[0-9]+)?", description)
    starts = ("=", "+", "-", "@", "\t", "\r")
    assert is_number or not escape_formulas(description).startswith(starts)
    assert escape_formulas(description).replace("'", "") == description.replace("'", "")
    movement = build_statement(1).movements[0]._replace(memo=description)
    content = csv_file.render(build_statement(0, movements=[movement], opening_balance=-1000))
    opening, row = read_records(content)
    assert opening["balance"] == "-10.00"
    assert row["description"] == escape_formulas(movement.description)
    assert row["balance"] == "-8.50"  # numbers are not escaped


async def test_request_without_to_date_is_rejected(harness: Harness, key: BearerAuth) -> None:
    body = build_request(harness, {"id": "sub_0000000000001"})
    del body["to_date"]
    assert parse_error(await harness.post(URL, json=body, auth=key)) == (400, "INVALID_REQUEST")


async def test_concurrent_requests_cannot_exceed_the_file_limit_of_a_subscriber(
    harness: Harness, key: BearerAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_FILES", 3)
    holder, other = await harness.create_subscriber(), await harness.create_subscriber()
    body = build_request(harness, holder, format="csv")
    requests = [harness.post(URL, json=body, auth=key) for _ in range(6)]
    responses = await asyncio.gather(*requests)
    assert sorted(response.status_code for response in responses) == [200] * 3 + [429] * 3
    found = {
        response.headers["retry-after"] for response in responses if response.status_code == 429
    }
    assert found == {"600"}
    body = build_request(harness, other, format="csv")
    assert (await harness.post(URL, json=body, auth=key)).status_code == 200
