"""Payout runs, bank files and schedules; parallel runs and cancellations."""

import asyncio
import csv
import io
from datetime import date
from typing import Any
from xml.etree import ElementTree

from builders.ledger import require_balanced_books
from builders.participants import create_agent
from builders.payouts import (
    BANK_ACCOUNTS_URL,
    PAYOUTS_URL,
    RUNS_URL,
    change_payout,
    create_bank_account,
    create_merchant,
    create_run,
    fund_owner,
    get_balance,
    get_payout,
    post_run,
    request_payout,
)
from business.finance.payouts.pain_structure import require_structure
from cases import each
from harness import Harness, parse_error
from tapgate.business.finance.payouts.bank_files import is_iban
from tapgate.business.finance.payouts.schedule_worker import PayoutScheduleWorker, find_due_day

NAMESPACE = "{urn:iso:std:iso:20022:tech:xsd:pain.001.001.09}"


async def get_first_payout(harness: Harness) -> dict[str, Any]:
    response = await harness.get("/api/v1/payouts", auth=await harness.create_admin("F"))
    payout: dict[str, Any] = response.json()["data"][0]
    return payout


async def count_payouts(harness: Harness) -> int:
    count: int = await harness.database.fetchval("SELECT count(*) FROM payouts")
    return count


async def test_run_needs_a_platform_account_and_leaves_blocked_accounts_out(
    harness: Harness,
) -> None:
    merchant = await create_merchant(harness)
    payout = await request_payout(harness, merchant, amount="10")
    assert parse_error(await post_run(harness)) == (409, "BANK_ACCOUNT_NOT_VERIFIED")
    await create_bank_account(harness, None)
    assert parse_error(await post_run(harness, owner_type="agent")) == (409, "PAYOUT_NOT_PENDING")
    await harness.post(
        f"{BANK_ACCOUNTS_URL}/{payout['bank_account_id']}/block",
        json={"reason": "stolen session"},
        auth=await harness.create_admin("F"),
    )
    assert parse_error(await post_run(harness)) == (409, "PAYOUT_NOT_PENDING")


async def test_repeated_run_request_returns_the_same_run(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    await request_payout(harness, merchant, amount="10")
    auth = await harness.create_admin("F")
    runs = [await harness.post(RUNS_URL, json={"request_id": "run-1"}, auth=auth) for _ in range(2)]
    assert runs[0].json() == runs[1].json()
    assert runs[1].headers["Idempotent-Replayed"] == "true"
    body = {"request_id": "run-1", "owner_type": "agent"}
    response = await harness.post(RUNS_URL, json=body, auth=auth)
    assert parse_error(response) == (409, "DUPLICATE_REQUEST")


async def test_run_counts_its_payouts_by_status(harness: Harness) -> None:
    await create_bank_account(harness, None)
    merchant = await create_merchant(harness)
    payouts = [(await request_payout(harness, merchant, amount="10"))["id"] for _ in range(3)]
    auth = await harness.create_admin("F")

    def count(run: dict[str, Any]) -> list[int]:
        return [run[name] for name in ("payouts", "submitted", "paid", "returned")]

    created = (await harness.post(RUNS_URL, json={"request_id": "run-1"}, auth=auth)).json()
    assert count(created) == [3, 3, 0, 0]
    for payout in payouts[:2]:
        assert (await change_payout(harness, payout, "paid")).status_code == 200
    returned = await change_payout(harness, payouts[1], "returned", reason="Account closed")
    assert returned.status_code == 200
    (run,) = (await harness.get(RUNS_URL, auth=auth)).json()["data"]
    assert count(run) == [3, 1, 1, 1]
    replayed = await harness.post(RUNS_URL, json={"request_id": "run-1"}, auth=auth)
    assert replayed.json() == created


async def test_bank_file_has_the_structure_of_pain_001_and_never_changes(harness: Harness) -> None:
    """The schema is not part of the project, so the structure is compared element by element."""
    merchant = await harness.get_processor_id(await harness.create_processor())
    await fund_owner(harness, merchant, "1000")
    await create_bank_account(
        harness, merchant, holder_name="Fofanah & S\x01öhne", number="DE89370400440532013000",
        bank_code="COBADEFFXXX",
    )  # fmt: skip
    agent = await create_agent(harness, balance="100")
    await create_bank_account(harness, agent["id"], bank_code="0012", number="003-12/99")
    await create_bank_account(harness, None)
    payouts = [
        await request_payout(harness, merchant, amount="12.30"),
        await request_payout(harness, agent["id"], amount="7"),
    ]
    run = await create_run(harness)
    auth = await harness.create_admin("F")
    url = f"{RUNS_URL}/{run['id']}/file"
    file = await harness.get(url, auth=auth)
    assert file.headers["Content-Type"] == "application/xml"
    check_pain_file(file.content, payouts)
    for payout in payouts:
        await change_payout(harness, payout["id"], "paid")
    assert (await harness.get(url, auth=auth)).content == file.content
    rows = await harness.get(f"{url}?format=csv", auth=auth)
    records = list(csv.DictReader(io.StringIO(rows.content.decode("utf-8-sig"))))
    assert [record["reference"] for record in records] == [item["reference"] for item in payouts]
    assert [record["amount"] for record in records] == ["12.30", "7.00"]
    downloads = await harness.get(
        "/api/v1/audit/logs?event=payout_run.downloaded", auth=await harness.create_admin("C")
    )
    assert len(downloads.json()["data"]) == 3
    missing = await harness.get(f"{RUNS_URL}/run_0000000000000/file", auth=auth)
    assert parse_error(missing) == (404, "PAYOUT_RUN_NOT_FOUND")


def check_pain_file(content: bytes, payouts: list[dict[str, Any]]) -> None:
    root = ElementTree.fromstring(content)
    assert root.tag == f"{NAMESPACE}Document"
    require_structure(root)
    (initiation,) = root
    assert list_tags(initiation) == ["GrpHdr", "PmtInf"]
    header, payment = initiation
    assert list_tags(header) == ["MsgId", "CreDtTm", "NbOfTxs", "CtrlSum", "InitgPty"]
    assert (find(header, "NbOfTxs"), find(header, "CtrlSum")) == ("2", "19.30")
    assert list_tags(payment) == [
        "PmtInfId", "PmtMtd", "NbOfTxs", "CtrlSum", "ReqdExctnDt", "Dbtr", "DbtrAcct", "DbtrAgt",
        "CdtTrfTxInf", "CdtTrfTxInf",
    ]  # fmt: skip
    transfers = payment.findall(f"{NAMESPACE}CdtTrfTxInf")
    for transfer, payout in zip(transfers, payouts, strict=True):
        assert list_tags(transfer) == ["PmtId", "Amt", "CdtrAgt", "Cdtr", "CdtrAcct", "RmtInf"]
        assert find(transfer, "PmtId/EndToEndId") == payout["reference"]
        assert find(transfer, "Amt/InstdAmt") == payout["amount"]
    assert find(transfers[0], "Cdtr/Nm") == "Fofanah & S öhne"
    assert find(transfers[0], "CdtrAcct/Id/IBAN") == "DE89370400440532013000"
    assert find(transfers[0], "CdtrAgt/FinInstnId/BICFI") == "COBADEFFXXX"
    assert find(transfers[1], "CdtrAcct/Id/Othr/Id") == "003-12/99"
    assert find(transfers[1], "CdtrAgt/FinInstnId/ClrSysMmbId/MmbId") == "0012"


def list_tags(element: Any) -> list[str]:
    return [child.tag.removeprefix(NAMESPACE) for child in element]


def find(element: Any, path: str) -> str | None:
    found: str | None = element.findtext("/".join(f"{NAMESPACE}{tag}" for tag in path.split("/")))
    return found


def test_only_numbers_with_a_correct_check_sum_are_ibans() -> None:
    assert is_iban("GB33BUKB20201555555555")
    assert not is_iban("GB34BUKB20201555555555")
    assert not is_iban("0012345678")


async def test_cancel_races_a_run_and_only_one_of_them_wins(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    for _ in range(8):
        payout = await request_payout(harness, merchant, amount="10")
        cancelled, run = await asyncio.gather(
            change_payout(harness, payout["id"], "cancel"), post_run(harness)
        )
        final = await get_payout(harness, payout["id"])
        if cancelled.status_code == 200:
            assert (final["status"], final["run_id"]) == ("cancelled", None)
            assert parse_error(run) == (409, "PAYOUT_NOT_PENDING")
        else:
            assert parse_error(cancelled) == (409, "PAYOUT_NOT_PENDING")
            assert (final["status"], final["run_id"]) == ("submitted", run.json()["id"])
    await require_balanced_books(harness.database)


async def test_parallel_runs_submit_each_payout_once(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    payouts = [await request_payout(harness, merchant, amount="10") for _ in range(6)]
    runs = await asyncio.gather(*(post_run(harness) for _ in range(3)))
    accepted = [run.json() for run in runs if run.status_code == 200]
    assert sum(run["payouts"] for run in accepted) == len(payouts)
    refused = [parse_error(run) for run in runs if run.status_code != 200]
    assert set(refused) <= {(409, "PAYOUT_NOT_PENDING")}


async def test_parallel_changes_move_the_money_once(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    payout = await request_payout(harness, merchant, amount="10")
    await create_run(harness)
    answers = await asyncio.gather(
        *(change_payout(harness, payout["id"], "returned", reason="closed") for _ in range(4)),
        *(change_payout(harness, payout["id"], "paid") for _ in range(2)),
    )
    assert [answer.status_code for answer in answers[:4]].count(200) == 1
    assert await get_balance(harness, merchant) == "1000.00"
    await require_balanced_books(harness.database)


async def test_replayed_changes_have_the_original_response(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    payout_id = (await request_payout(harness, merchant, amount="10"))["id"]
    await create_run(harness)
    officer = await harness.create_admin("F")
    first = []
    for verb, fields in (("paid", {"bank_reference": "B-1"}), ("returned", {"reason": "closed"})):
        path, body = f"{PAYOUTS_URL}/{payout_id}/{verb}", {**fields, "request_id": verb}
        first.append((path, body, await harness.post(path, json=body, auth=officer)))
    assert [response.json()["status"] for *_, response in first] == ["paid", "returned"]
    for path, body, response in first:
        replay = await harness.post(path, json=body, auth=officer)
        assert replay.headers["idempotent-replayed"] == "true"
        assert replay.json() == response.json()
    assert await get_balance(harness, merchant) == "1000.00"


async def add_closed_day(harness: Harness, day: date) -> None:
    await harness.database.execute(
        """INSERT INTO closed_days
           VALUES ($1, now(), now(), 0, 0, '[]', NULL, NULL, '', 'k', now())""",
        day,
    )


async def test_schedule_requests_one_payout_per_closed_day_on_any_number_of_nodes(
    harness: Harness,
) -> None:
    merchant = await create_merchant(harness)
    await harness.put(
        f"/api/v1/processors/{merchant}/payout-schedule",
        json={"interval": "daily", "minimum": "100", "reserve_percent": 50},
        auth=await harness.create_admin("F"),
    )
    workers = [PayoutScheduleWorker(harness.services) for _ in range(2)]
    await workers[0].request_due()
    assert await count_payouts(harness) == 0
    await add_closed_day(harness, date(2026, 3, 10))
    await asyncio.gather(*(worker.request_due() for worker in workers))
    await workers[1].request_due()
    payout = await get_first_payout(harness)
    assert (await count_payouts(harness), payout["amount"]) == (1, "500.00")
    for day in (11, 12, 13):
        await add_closed_day(harness, date(2026, 3, day))
        await workers[0].request_due()
    # 250 and 125 are above the minimum, 62.50 is not.
    assert await count_payouts(harness) == 3


async def test_scheduled_payout_waits_for_approval_under_a_rule(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    maker = await harness.create_admin("F")
    await harness.put(
        f"/api/v1/processors/{merchant}/payout-schedule", json={"interval": "daily"}, auth=maker
    )
    await harness.database.execute(
        """INSERT INTO approval_rules (id, operation, roles, approvers, expires_in)
           VALUES (1, 'payouts', '{finance_user}', 1, 3600)"""
    )
    await add_closed_day(harness, date(2026, 3, 10))
    for _ in range(2):
        await PayoutScheduleWorker(harness.services).request_due()
    rows = await harness.database.fetch("SELECT status, operation FROM approvals")
    assert [tuple(row) for row in rows] == [("pending", "payouts")]
    assert await count_payouts(harness) == 0


@each("closed, due", [(date(2026, 3, 8), date(2026, 3, 8)), (date(2026, 3, 14), date(2026, 3, 8))])
def test_weekly_payout_is_due_after_sunday(closed: date, due: date) -> None:
    assert find_due_day("weekly", closed) == due
    assert find_due_day("daily", closed) == closed
