"""Batches over HTTP: upload, validation, run, cancellation and results."""

import asyncio
from typing import Any

import pytest

from builders.batches import (
    BATCHES_URL,
    build_csv,
    change_batch,
    create_draft,
    create_funded_partner,
    get_batch,
    get_codes,
    list_lines,
    pay_batches,
    post_batch,
    put_lines,
    run_batch,
    start_batch,
)
from builders.ledger import require_balanced_books
from builders.participants import (
    create_card,
    create_webhook_endpoint,
    get_wallet_balance,
    list_events,
)
from builders.payouts import get_balance, get_platform_balance
from harness import Harness, parse_error
from tapgate.core.pagination import encode_cursor
from tapgate_client import ids


async def create_people(harness: Harness, count: int) -> list[dict[str, Any]]:
    return [await harness.create_subscriber() for _ in range(count)]


def build_rows(people: list[dict[str, Any]], amount: str = "100") -> list[tuple[str, str, str]]:
    return [
        (person["phone_number"], amount, f"EMP-{number}") for number, person in enumerate(people, 1)
    ]


async def test_batch_pays_every_receiver_from_the_partner(harness: Harness) -> None:
    people, partner = await create_people(harness, 3), await create_funded_partner(harness)
    await create_webhook_endpoint(harness)
    batch = await run_batch(harness, build_rows(people), partner)
    assert (batch["status"], batch["paid"], batch["failed"]) == ("completed", 3, 0)
    assert (batch["total_amount"], batch["paid_amount"]) == ("300.00", "300.00")
    assert batch["source"]["type"] == "partner"
    assert batch["source"]["id"] == partner
    assert batch["completed_at"] is not None
    assert [await get_wallet_balance(harness, person) for person in people] == ["100.00"] * 3
    assert await get_balance(harness, partner) == "700.00"
    lines = await list_lines(harness, batch["id"])
    assert [(line["row"], line["status"]) for line in lines] == [
        (1, "paid"), (2, "paid"), (3, "paid"),
    ]  # fmt: skip
    events = [name for name, _ in await list_events(harness)]
    assert events.count("batch.completed") == 1
    await require_balanced_books(harness.database)


async def test_line_is_an_ordinary_transaction_with_its_key(harness: Harness) -> None:
    [person] = await create_people(harness, 1)
    batch = await run_batch(harness, build_rows([person]))
    [line] = await list_lines(harness, batch["id"])
    auth = await harness.create_admin("F")
    record = (await harness.get(f"/api/v1/transactions/{line['transaction_id']}", auth=auth)).json()
    assert record["type"] == "batch_credit"
    assert record["request_id"] == f"{batch['id']}:1"
    assert record["memo"] == "Salaries November: EMP-1"
    assert record["from"]["type"] == "platform"
    assert await get_platform_balance(harness, "cash") == "-100.00"


async def test_receivers_get_a_receipt(harness: Harness) -> None:
    people = await create_people(harness, 2)
    await run_batch(harness, build_rows(people))
    notices = await harness.database.fetch("SELECT kind, subscriber_id FROM notices")
    expected = {("money_received", ids.decode(ids.SUBSCRIBER, each["id"])) for each in people}
    assert {tuple(row) for row in notices} == expected


async def test_validation_finds_every_problem(harness: Harness) -> None:
    active, blocked, rich = await create_people(harness, 3)
    auth = await harness.create_admin()
    await harness.post(
        f"/api/v1/subscribers/{blocked['id']}/block", json={"reason": "fraud"}, auth=auth
    )
    phone = active["phone_number"]
    rows = [
        (phone, "10", "A"),
        (phone, "10", "A"),
        (phone, "10", "B"),
        (phone, "0", "C"),
        (phone, "ten", "D"),
        (phone, "10.001", "E"),
        (phone, "10", ""),
        ("+23276999999", "10", "F"),
        ("12", "10", "G"),
        (blocked["phone_number"], "10", "H"),
        (rich["phone_number"], "300000", "I"),
        (rich["phone_number"], "300000", "J"),
    ]
    batch_id = await create_draft(harness, rows)
    batch = (await change_batch(harness, batch_id, "validate")).json()
    assert (batch["status"], batch["valid"], batch["invalid"]) == ("validated", 2, 10)
    assert batch["total_amount"] == "20.00"
    lines = await list_lines(harness, batch_id)
    assert [(line["code"], line["column"]) for line in lines] == [
        (None, None),
        ("DUPLICATE_REFERENCE", "reference"),
        (None, None),
        ("VALIDATION_FAILED", "amount"),
        ("VALIDATION_FAILED", "amount"),
        ("VALIDATION_FAILED", "amount"),
        ("VALIDATION_FAILED", "reference"),
        ("SUBSCRIBER_NOT_FOUND", "phone_number"),
        ("VALIDATION_FAILED", "phone_number"),
        ("SUBSCRIBER_BLOCKED", "phone_number"),
        ("MAX_BALANCE_EXCEEDED", "amount"),
        ("MAX_BALANCE_EXCEEDED", "amount"),
    ]
    assert [line["amount"] for line in lines[3:6]] == ["0", "ten", "10.001"]
    assert [line["row"] for line in await list_lines(harness, batch_id, status="pending")] == [1, 3]
    await change_batch(harness, batch_id, "run")
    await pay_batches(harness)
    batch = await get_batch(harness, batch_id)
    assert (batch["status"], batch["paid"], batch["failed"]) == ("completed_with_errors", 2, 0)
    assert await get_wallet_balance(harness, active) == "20.00"


async def test_cards_identify_receivers(harness: Harness) -> None:
    [person] = await create_people(harness, 1)
    card, blocked = [await harness.create_card(person["id"]) for _ in range(2)]
    await harness.database.execute("UPDATE cards SET status = 'BLOCKED' WHERE serial = $1", blocked)
    unlinked = await create_card(harness)
    rows = [
        ("", card, "10", "A"),
        ("", blocked, "10", "B"),
        ("", unlinked, "10", "C"),
        ("", "NO-SUCH", "10", "D"),
        (person["phone_number"], card, "10", "E"),
        ("", "%", "10", "F"),
        (person["phone_number"], "", "10", "A"),
    ]
    batch_id = (await post_batch(harness)).json()["id"]
    header = ("phone_number", "card_serial", "amount", "reference")
    assert (await put_lines(harness, batch_id, build_csv(rows, header))).status_code == 200
    await change_batch(harness, batch_id, "validate")
    lines = await list_lines(harness, batch_id)
    assert [(line["code"], line["column"]) for line in lines] == [
        (None, None),
        ("CARD_NOT_ACTIVE", "card_serial"),
        ("CARD_NOT_ACTIVE", "card_serial"),
        ("CARD_NOT_FOUND", "card_serial"),
        ("VALIDATION_FAILED", "card_serial"),
        ("VALIDATION_FAILED", "card_serial"),
        ("DUPLICATE_REFERENCE", "reference"),
    ]


async def test_source_that_cannot_pay_leaves_a_draft(harness: Harness) -> None:
    people, partner = await create_people(harness, 2), await create_funded_partner(harness, "150")
    batch_id = await create_draft(harness, build_rows(people), partner)
    response = await change_batch(harness, batch_id, "validate")
    code, details = response.json()["code"], response.json()["details"]
    assert (code, details) == ("INSUFFICIENT_FUNDS", {"available": 150.0, "required": 200.0})
    assert (await get_batch(harness, batch_id))["status"] == "draft"
    assert get_codes(await list_lines(harness, batch_id)) == [("pending", None)] * 2


async def test_fees_are_paid_by_the_source_on_top(harness: Harness) -> None:
    people, partner = await create_people(harness, 2), await create_funded_partner(harness, "201")
    admin = await harness.create_admin()
    rule = {"type": "batch_credit", "up_to": None, "rate": "1", "payer": "sender"}
    url = "/api/v1/fee-rules/batch_credit"
    refused = await harness.put(url, json={"data": [rule | {"payer": "receiver"}]}, auth=admin)
    assert refused.json()["code"] == "VALIDATION_FAILED"
    assert (await harness.put(url, json={"data": [rule]}, auth=admin)).status_code == 200
    batch_id = await create_draft(harness, build_rows(people), partner)
    response = await change_batch(harness, batch_id, "validate")
    assert response.json()["details"] == {"available": 201.0, "required": 202.0}
    batch = await run_batch(harness, build_rows(people[:1]), partner, name="Others")
    assert batch["paid_amount"] == "100.00"
    assert await get_balance(harness, partner) == "100.00"
    assert await get_wallet_balance(harness, people[0]) == "100.00"


async def test_line_that_fails_does_not_stop_the_others(harness: Harness) -> None:
    people = await create_people(harness, 3)
    batch_id = await start_batch(harness, build_rows(people))
    auth = await harness.create_admin()
    await harness.post(
        f"/api/v1/subscribers/{people[1]['id']}/block", json={"reason": "fraud"}, auth=auth
    )
    await pay_batches(harness)
    batch = await get_batch(harness, batch_id)
    assert (batch["status"], batch["paid"], batch["failed"]) == ("completed_with_errors", 2, 1)
    lines = await list_lines(harness, batch_id)
    assert get_codes(lines) == [("paid", None), ("failed", "SUBSCRIBER_BLOCKED"), ("paid", None)]
    assert all(line["transaction_id"] for line in lines)
    assert [line["row"] for line in await list_lines(harness, batch_id, status="failed")] == [2]
    await require_balanced_books(harness.database)


async def test_held_line_is_paid_when_the_review_releases_it(harness: Harness) -> None:
    people = await create_people(harness, 2)
    admin = await harness.create_admin("A")
    rule = {
        "name": "Large salary", "type": "AMOUNT_THRESHOLD", "transaction_types": ["batch_credit"],
        "subject": "payee", "threshold": "50.00", "action": "review",
    }  # fmt: skip
    created = await harness.post("/api/v1/compliance/rules", json=rule, auth=admin)
    assert created.status_code == 201, created.text
    batch_id = await start_batch(harness, build_rows(people), await create_funded_partner(harness))
    await pay_batches(harness)
    batch = await get_batch(harness, batch_id)
    assert (batch["status"], batch["paid"], batch["failed"]) == ("running", 0, 0)
    lines = await list_lines(harness, batch_id)
    assert all(line["status"] == "pending" and line["transaction_id"] for line in lines)
    await change_batch(harness, batch_id, "cancel")
    assert (await list_lines(harness, batch_id))[0]["status"] == "pending"
    reviewer = await harness.create_admin("C")
    alerts = (await harness.get("/api/v1/compliance/alerts", auth=reviewer)).json()["data"]
    assert len(alerts) == 2
    for alert, decision in zip(alerts, ("release", "reject"), strict=True):
        resolved = await harness.post(
            f"/api/v1/compliance/alerts/{alert['id']}/resolve",
            json={
                "status": "resolved",
                "resolution_notes": "Checked",
                "transaction_decision": decision,
            },
            auth=reviewer,
        )
        assert resolved.status_code == 200, resolved.text
    batch = await get_batch(harness, batch_id)
    assert (batch["paid"], batch["failed"], batch["paid_amount"]) == (1, 1, "100.00")
    codes = get_codes(await list_lines(harness, batch_id))
    assert sorted(codes, key=str) == [("failed", "COMPLIANCE_REJECTED"), ("paid", None)]
    await require_balanced_books(harness.database)


async def test_cancelled_batch_pays_nothing_more(harness: Harness) -> None:
    people = await create_people(harness, 2)
    batch_id = await start_batch(harness, build_rows(people))
    cancelled = await change_batch(harness, batch_id, "cancel")
    assert cancelled.json()["status"] == "cancelled"
    await pay_batches(harness)
    assert get_codes(await list_lines(harness, batch_id)) == [("skipped", None)] * 2
    assert len(await list_lines(harness, batch_id, status="skipped")) == 2
    assert await list_lines(harness, batch_id, status="pending") == []
    assert await get_wallet_balance(harness, people[0]) == "0.00"


async def test_states_that_do_not_allow_a_change(harness: Harness) -> None:
    people = await create_people(harness, 1)
    rows = build_rows(people)
    empty = (await post_batch(harness)).json()["id"]
    draft = await create_draft(harness, rows, name="Draft")
    validated = await create_draft(harness, rows, name="Validated")
    await change_batch(harness, validated, "validate")
    done = (await run_batch(harness, rows, name="Done"))["id"]
    cancelled = await create_draft(harness, rows, name="Cancelled")
    await change_batch(harness, cancelled, "cancel")
    for batch_id, verbs in (
        (empty, ("validate", "run")),
        (draft, ("run",)),
        (validated, ("validate",)),
        (done, ("validate", "run", "cancel")),
        (cancelled, ("validate", "run", "cancel")),
    ):
        for verb in verbs:
            response = await change_batch(harness, batch_id, verb)
            assert parse_error(response) == (409, "BATCH_NOT_READY")
    for batch_id in (validated, done, cancelled):
        response = await put_lines(harness, batch_id, build_csv(rows))
        assert parse_error(response) == (409, "BATCH_NOT_READY")
    assert (await change_batch(harness, validated, "cancel")).json()["status"] == "cancelled"
    unknown = await change_batch(harness, "bat_0000000000001", "run")
    assert parse_error(unknown) == (404, "BATCH_NOT_FOUND")


async def test_requests_are_replayed_by_their_key(harness: Harness) -> None:
    people, auth = await create_people(harness, 1), await harness.create_admin("F")
    first = await post_batch(harness, request_id="b-1", auth=auth)
    again = await post_batch(harness, request_id="b-1", auth=auth)
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await post_batch(harness, name="Other", request_id="b-1", auth=auth)
    assert parse_error(other) == (409, "DUPLICATE_REQUEST")
    batch_id = first.json()["id"]
    await put_lines(harness, batch_id, build_csv(build_rows(people)))
    await change_batch(harness, batch_id, "validate")
    started, repeated = await asyncio.gather(
        *(change_batch(harness, batch_id, "run", auth=auth, request_id="r-1") for _ in range(2))
    )
    assert (started.status_code, repeated.status_code) == (202, 202)
    await pay_batches(harness)
    assert await get_wallet_balance(harness, people[0]) == "100.00"
    draft = await create_draft(harness, build_rows(people, "7"), name="Draft")
    other = await change_batch(harness, draft, "run", auth=auth, request_id="r-1")
    assert parse_error(other) == (409, "DUPLICATE_REQUEST")


async def test_same_lines_under_the_same_name_are_refused_for_a_day(harness: Harness) -> None:
    people = await create_people(harness, 2)
    rows = build_rows(people)
    first = await create_draft(harness, rows)
    assert (await put_lines(harness, first, build_csv(rows))).status_code == 200
    second = (await post_batch(harness)).json()["id"]
    response = await put_lines(harness, second, build_csv(reversed(rows)))
    assert parse_error(response) == (409, "DUPLICATE_REQUEST")
    assert response.json()["details"] == {"batch_id": first}
    other_name = (await post_batch(harness, name="Bonus")).json()["id"]
    assert (await put_lines(harness, other_name, build_csv(rows))).status_code == 200
    await change_batch(harness, first, "cancel")
    assert (await put_lines(harness, second, build_csv(rows))).status_code == 200
    third = (await post_batch(harness)).json()["id"]
    await harness.database.execute("UPDATE batches SET lines_at = lines_at - interval '25 hours'")
    assert (await put_lines(harness, third, build_csv(rows))).status_code == 200


@pytest.mark.parametrize(
    ("file", "field"),
    [
        (b"", "file"),
        (b"phone_number,amount,reference\n", "file"),
        (b"phone_number,amount\n+23276000001,1\n", "file"),
        (b"amount,reference\n1,A\n", "file"),
        (b"phone_number,phone_number,amount,reference\n+23276000001,,1,A\n", "file"),
        (b"phone_number,amount,reference\n\xff,1,A\n", "file"),
        (b"phone_number,amount,reference\n+23276000001,1,A,B\n", "row 1"),
        (b'phone_number,amount,reference\n+23276000001,1,"A\n', "file"),
        (b"phone_number,amount,reference\n+1,1,A\n+1,1,%s\n" % (b"x" * 256), "row 2, reference"),
        (b"phone_number,amount,reference\n+1,1,a\0b\n", "row 1, reference"),
        (b"phone_number,amount,reference\n" + b"+1,1,A\n" * 50_001, "file"),
        (b"phone_number,amount,reference\n" + b"," * 20_000, "file"),
    ],
)
async def test_unreadable_file_is_refused(harness: Harness, file: bytes, field: str) -> None:
    batch_id = (await post_batch(harness)).json()["id"]
    response = await put_lines(harness, batch_id, file)
    assert response.status_code == 422, response.text
    assert list(response.json()["details"]["fields"]) == [field]
    assert (await get_batch(harness, batch_id))["lines"] == 0


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("separator", [",", ";"])
async def test_file_dialects(harness: Harness, mark: bytes, separator: str) -> None:
    [person] = await create_people(harness, 1)
    cells = [
        ["Reference ", "Name", "AMOUNT", "phone_number", ""],
        ['"A 1"', "Aminata", "1.50", person["phone_number"].replace("+232", "+232 "), ""],
        ["", "", "", "", ""],
    ]
    file = mark + "\r\n".join(separator.join(row) for row in cells).encode()
    batch_id = (await post_batch(harness)).json()["id"]
    response = await put_lines(harness, batch_id, file)
    assert (response.status_code, response.json()["lines"]) == (200, 1)
    [line] = await list_lines(harness, batch_id)
    assert (line["phone_number"], line["amount"], line["reference"]) == (
        person["phone_number"], "1.50", "A 1",
    )  # fmt: skip


async def test_results_as_a_file_and_in_pages(harness: Harness) -> None:
    people = await create_people(harness, 3)
    batch = await run_batch(harness, [*build_rows(people), ("+23276999999", "1", "=1+1")])
    auth = await harness.create_admin("F")
    url = f"{BATCHES_URL}/{batch['id']}/lines"
    file = await harness.get(f"{url}?format=csv", auth=auth)
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    assert file.content.startswith(b"\xef\xbb\xbfrow,phone_number,card_serial,amount,reference,")
    assert b"'=1+1" in file.content
    assert file.content.count(b"\r\n") == 5
    invalid = await harness.get(f"{url}?format=csv&status=invalid", auth=auth)
    assert invalid.content.count(b"\r\n") == 2
    rows, cursor = [], None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await harness.get(url, params=query, auth=auth)).json()
        rows += [line["row"] for line in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert rows == [1, 2, 3, 4]
    assert (await harness.get(f"{url}?status=lost", auth=auth)).status_code == 422
    newest = (await harness.get(f"{url}?order=newest&limit=1", auth=auth)).json()["data"]
    assert [line["row"] for line in newest] == [4]
    past_the_end = await harness.get(f"{url}?cursor={encode_cursor(2**62)}", auth=auth)
    assert past_the_end.json()["data"] == []


async def test_batch_credit_can_be_reversed(harness: Harness) -> None:
    [person] = await create_people(harness, 1)
    for source in ("platform", await create_funded_partner(harness)):
        batch = await run_batch(harness, build_rows([person]), source, name=source)
        [line] = await list_lines(harness, batch["id"])
        response = await harness.post(
            f"/api/v1/transactions/{line['transaction_id']}/reverse",
            json={"reason": "Left the company", "request_id": f"undo-{source}"},
            auth=await harness.create_admin("F"),
        )
        assert response.status_code == 200, response.text
        assert await get_wallet_balance(harness, person) == "0.00"
    await require_balanced_books(harness.database)


async def test_unknown_source_is_refused(harness: Harness) -> None:
    unknown = await post_batch(harness, "ptn_0000000000001")
    assert parse_error(unknown) == (404, "PARTNER_NOT_FOUND")
    assert (await post_batch(harness, "cash")).status_code == 422


async def test_suspended_partner_cannot_pay(harness: Harness) -> None:
    people, partner = await create_people(harness, 1), await create_funded_partner(harness)
    batch_id = await create_draft(harness, build_rows(people), partner)
    auth = await harness.create_admin()
    await harness.post(
        f"/api/v1/admin/partners/{partner}/suspend", json={"reason": "fraud"}, auth=auth
    )
    response = await change_batch(harness, batch_id, "validate")
    assert response.json()["code"] == "PARTNER_SUSPENDED"
