"""Balances by account kind, trial balance and journal over HTTP."""

import asyncio
import csv
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pytest
from beancount import loader
from beancount.core.data import Transaction

from builders.participants import cash_in, create_agent
from builders.payments import PosDriver
from cases import each
from drivers.csv_files import read_records
from harness import Harness
from tapgate.business.finance.general_ledger import journal
from tapgate.business.finance.general_ledger.journal_formats import BUILDERS, DESCRIPTIONS
from tapgate.business.finance.general_ledger.model import ROOTS
from tapgate.ledger import chart
from tapgate_client import ids
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.general_ledger import AccountKind, GlCode, JournalRow

HLEDGER = shutil.which("hledger")
#: Kind -> balance after `make_transactions`, on the account's normal side.
BALANCES = {
    "cash": "6000.00",
    "payouts_in_transit": "0.00",
    "suspense": "0.00",
    "wallet": "1440.00",
    "float": "4500.00",
    "commission": "5.00",
    "settlement": "59.00",
    "clearing": "0.00",
    "fees": "1.00",
    "commission_expense": "5.00",
}


async def get_report(harness: Harness, path: str, **query: Any) -> Any:
    response = await harness.client.get(
        f"/api/v1/ledger/{path}", params=query, auth=await harness.create_admin("F")
    )
    assert response.status_code == 200, response.text
    return response.json()


async def get_journal(harness: Harness, day: date, **query: Any) -> str:
    """Return a day's journal; all files, one after the other."""
    auth, files, cursor = await harness.create_admin("F"), [], {}
    while True:
        response = await harness.client.get(
            "/api/v1/ledger/journal", params={"day": str(day), **query, **cursor}, auth=auth
        )
        assert response.status_code == 200, response.text
        files.append(response.text)
        if "X-Next-Cursor" not in response.headers:
            return "".join(files)
        cursor = {"cursor": response.headers["X-Next-Cursor"]}


async def get_journal_of(harness: Harness, **query: Any) -> str:
    response = await harness.client.get(
        "/api/v1/ledger/journal", params=query, auth=await harness.create_admin("F")
    )
    assert response.status_code == 200, response.text
    return response.text


def get_day(harness: Harness) -> date:
    return get_platform_day(harness.services.clock(), harness.services.settings.timezone)


async def make_transactions(harness: Harness) -> list[date]:
    """Deposit, pay, refund and cash in. Return the days: more than one around midnight."""
    first_day = get_day(harness)
    pos = await PosDriver.create(harness, balance="1000")
    paid = await pos.pay("100.00")
    assert (await pos.refund(paid.json()["transaction_id"], "40.00")).status_code == 200
    agent = await create_agent(harness, balance="5000.00")
    assert (await cash_in(harness, agent, pos.customer, "500.00")).status_code == 200
    return sorted({first_day, get_day(harness)})


async def test_accounts_include_the_platform(harness: Harness) -> None:
    empty = (await get_report(harness, "accounts"))["data"]
    assert {row["kind"] for row in empty} == set(AccountKind)
    assert {(row["debit"], row["credit"], row["balance"]) for row in empty} == {("0.00",) * 3}
    await make_transactions(harness)
    rows = (await get_report(harness, "accounts"))["data"]
    assert {row["kind"]: row["balance"] for row in rows} == BALANCES
    accounts = dict.fromkeys(BALANCES, 1) | {"clearing": 0}
    assert {row["kind"]: row["accounts"] for row in rows} == accounts
    sides = {row["kind"]: row["normal_side"] for row in rows}
    debit_kinds = {kind for kind, side in sides.items() if side == "debit"}
    assert debit_kinds == {"cash", "commission_expense"}
    for row in rows:
        sign = -1 if row["kind"] in debit_kinds else 1
        assert Decimal(row["credit"]) - Decimal(row["debit"]) == sign * Decimal(row["balance"])
        assert "0.00" in (row["debit"], row["credit"])
    assert sum(Decimal(row["credit"]) - Decimal(row["debit"]) for row in rows) == 0
    platform = await harness.database.fetch("SELECT kind, id FROM accounts WHERE owner_id IS NULL")
    ids_by_kind = {row["kind"]: ids.encode(ids.ACCOUNT, row["id"]) for row in platform}
    assert {row["kind"]: row["account_id"] for row in rows if row["account_id"]} == ids_by_kind
    assert list(rows[0]) == [
        "kind", "gl_code", "name", "account_id", "accounts", "normal_side", "debit", "credit",
        "balance", "currency",
    ]  # fmt: skip


async def test_trial_balance_as_of_a_time_or_day(harness: Harness) -> None:
    first_day, *_ = days = await make_transactions(harness)
    now = await get_report(harness, "trial-balance")
    assert (now["totals"], now["currency"]) == ({"debit": "6005.00", "credit": "6005.00"}, "SLE")
    assert now["rows"][0] == {
        "gl_code": "1000", "name": "Cash and bank", "debit": "6000.00", "credit": "0.00",
    }  # fmt: skip
    assert [row["gl_code"] for row in now["rows"]] == sorted(row["gl_code"] for row in now["rows"])
    same = await get_report(harness, "trial-balance", as_of=days[-1])
    assert (same["rows"], same["as_of"]) == (now["rows"], f"{days[-1]}T23:59:59.999Z")
    same = await get_report(harness, "trial-balance", as_of=now["as_of"])
    assert (same["rows"], same["as_of"]) == (now["rows"], now["as_of"])
    before = await get_report(harness, "trial-balance", as_of=first_day - timedelta(days=1))
    assert before["totals"] == {"debit": "0.00", "credit": "0.00"}
    future = await get_report(harness, "trial-balance", as_of="9998-12-31")
    assert future["rows"] == now["rows"]


async def test_totals_are_equal_during_payments(harness: Harness) -> None:
    await harness.disable_compliance_rules()
    pos = await PosDriver.create(harness, balance="1000")
    payments = [pos.pay("1.00") for _ in range(30)]
    reports = [get_report(harness, "trial-balance") for _ in range(6)]
    results: list[Any] = await asyncio.gather(*payments, *reports)
    assert {response.status_code for response in results[:30]} == {200}
    for report in results[30:]:
        assert report["totals"]["debit"] == report["totals"]["credit"] == "1000.00"


@each("path, query, field", [
    ("trial-balance", {"as_of": "yesterday"}, "as_of"),
    ("trial-balance", {"as_of": "2026-02-30"}, "as_of"),
    ("trial-balance", {"as_of": "0001-01-01"}, "as_of"),
    ("journal", {}, "day"),
    ("journal", {"day": "2026-13-01"}, "day"),
    ("journal", {"day": "0001-01-01"}, "day"),
    ("journal", {"day": "9999-12-31"}, "day"),
    ("journal", {"day": "2026-01-31T12:00:00Z"}, "day"),
    ("journal", {"day": "2026-01-31", "format": "xlsx"}, "format"),
    ("journal", {"day": "2026-01-31", "limit": 0}, "limit"),
    ("journal", {"day": "2026-01-31", "limit": 20_001}, "limit"),
    ("journal", {"day": "2026-01-31", "cursor": "cur_"}, "cursor"),
    ("journal", {"from": "2026-01-01"}, "to"),
    ("journal", {"to": "2026-01-01"}, "from"),
    ("journal", {"from": "2026-01-02", "to": "2026-01-01"}, "to"),
    ("journal", {"from": "2026-01-01", "to": "2026-02-01"}, "to"),
    ("journal", {"day": "2026-01-01", "from": "2026-01-01", "to": "2026-01-02"}, "day"),
])  # fmt: skip
async def test_invalid_query_is_rejected_with_its_field(
    harness: Harness, path: str, query: dict[str, Any], field: str
) -> None:
    response = await harness.client.get(
        f"/api/v1/ledger/{path}", params=query, auth=await harness.create_admin("F")
    )
    assert response.status_code == 422, response.text
    assert list(response.json()["details"]["fields"]) == [field]


async def test_journal_rows_in_json_and_csv(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "PAGE_SIZE", 2)  # a file has several pages
    (day, *_) = days = await make_transactions(harness)
    rows = (await get_report(harness, "journal", day=day))["data"]
    if len(days) > 1:
        rows += (await get_report(harness, "journal", day=days[1]))["data"]
    assert tuple(rows[0]) == JournalRow.__struct_fields__
    amounts = [
        (row["entry"], row["gl_code"], row["debit"], row["credit"], row["description"][:12])
        for row in rows
    ]
    assert amounts[2:6] == [
        (0, "2100", "100.00", "0.00", "Card payment"),
        (0, "2400", "0.00", "100.00", "Card payment"),
        (1, "2400", "1.00", "0.00", "Card payment"),
        (1, "4000", "0.00", "1.00", "Card payment"),
    ]
    assert rows[6]["description"] == f"Refund of {rows[2]['transaction_id']}"
    assert len({(row["transaction_id"], row["entry"]) for row in rows}) * 2 == len(rows)
    files = [await get_journal(harness, day, format="csv") for day in days]
    from_csv = [row for file in files for row in read_records(file.encode())]
    assert [{**row, "entry": str(row["entry"])} for row in rows] == from_csv


async def test_journal_of_a_period_joins_its_days(harness: Harness) -> None:
    days = await make_transactions(harness)
    first, last = days[0] - timedelta(days=15), days[0] + timedelta(days=15)
    rows = (await get_report(harness, "journal", **{"from": str(first), "to": str(last)}))["data"]
    by_day = [(await get_report(harness, "journal", day=day))["data"] for day in days]
    assert rows == [row for data in by_day for row in data]
    response = await harness.client.get(
        "/api/v1/ledger/journal",
        params={"from": str(first), "to": str(last), "format": "csv"},
        auth=await harness.create_admin("F"),
    )
    name = f"journal-{first}-to-{last}.csv"
    assert response.headers["Content-Disposition"] == f'attachment; filename="{name}"'


#: References that a program would read as dates, tags, comments, formulas or the end of a string.
HOSTILE_REFERENCES = [
    "INV-2026/07", "=1+1", "a, date:2026-99-99", "[2026-99-99]", "; comment", 'say "hi"', "\\",
    "x\\", "1:2", "Ünï 札", "tab\there", "2026-01-01 * fake", "-", "%41",
]  # fmt: skip


async def test_reference_is_the_transaction_ref_or_the_request_id(harness: Harness) -> None:
    await harness.disable_compliance_rules()
    pos = await PosDriver.create(harness, balance="1000")
    for number, reference in enumerate(HOSTILE_REFERENCES):
        paid = await pos.pay("1.00", transaction_ref=reference, request_id=f"r{number}")
        assert paid.status_code == 200, paid.text
    assert (await pos.pay("1.00", request_id="only-a-request")).status_code == 200
    today = get_day(harness)
    period = {"from": str(today - timedelta(days=1)), "to": str(today)}
    rows = (await get_report(harness, "journal", **period))["data"]
    references = list(dict.fromkeys(row["reference"] for row in rows if row["entry"] == 1))
    assert references == [*HOSTILE_REFERENCES, "only-a-request"]
    csv_text = await get_journal_of(harness, format="csv", **period)
    cells = {row["reference"] for row in csv.DictReader(io.StringIO(csv_text))}
    assert {"'=1+1", "INV-2026/07", "only-a-request"} <= cells
    assert "=1+1" not in cells


@pytest.mark.parametrize("program", ["beancount", "hledger"])
async def test_accounting_programs_read_every_reference(
    harness: Harness, tmp_path: Path, program: str
) -> None:
    await harness.disable_compliance_rules()
    pos = await PosDriver.create(harness, balance="1000")
    for reference in HOSTILE_REFERENCES:
        await pos.pay("1.00", transaction_ref=reference)
    today = get_day(harness)
    period = {"from": str(today - timedelta(days=1)), "to": str(today)}
    text = await get_journal_of(harness, format=program, **period)
    if program == "beancount":
        expected = [reference.replace("\t", " ") for reference in HOSTILE_REFERENCES]
        assert sorted(read_references_with_beancount(text)) == sorted(expected)
    elif HLEDGER is None:
        pytest.skip("hledger is not installed")
    else:
        references, dates = read_references_with_hledger(text, tmp_path)
        assert sorted(references) == sorted(HOSTILE_REFERENCES)
        assert dates <= set(period.values())


def read_references_with_beancount(text: str) -> list[str]:
    entries, errors, _ = loader.load_string(text)
    assert errors == []
    found = [entry.meta.get("reference") for entry in entries if isinstance(entry, Transaction)]
    return [reference for reference in found if reference]


def read_references_with_hledger(text: str, folder: Path) -> tuple[list[str], set[str]]:
    """Return the values of the tag, and the dates of all transactions."""
    file = folder / "tapgate.journal"
    file.write_text(text)

    def run(*arguments: str) -> str:
        assert HLEDGER is not None
        result = subprocess.run(
            [HLEDGER, "-f", file, *arguments],
            check=True,
            timeout=60,
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        return result.stdout

    run("check", "--strict")
    references = [unquote(line) for line in run("tags", "reference", "--values").splitlines()]
    return references, {entry["tdate"] for entry in json.loads(run("print", "-O", "json"))}


async def test_empty_day_has_an_empty_journal(harness: Harness) -> None:
    page = await get_report(harness, "journal", day="2026-01-31")
    assert page == {"data": [], "has_more": False, "next_cursor": None}
    header = await get_journal(harness, date(2026, 1, 31), format="csv")
    assert header.count("\r\n") == 1


async def test_journal_has_no_personal_data(harness: Harness) -> None:
    subscriber = await harness.create_restricted_subscriber(balance="100")
    personal = [subscriber["phone_number"], "Aminata", "Kamara", subscriber["id"]]
    for format in ("json", "csv", "hledger", "beancount"):
        text = await get_journal(harness, get_day(harness), format=format)
        assert "100.00" in text
        assert not [value for value in personal if value in text]


def sum_with_beancount(text: str, folder: Path) -> dict[str, Decimal]:
    entries, errors, _ = loader.load_string(text)
    assert errors == []
    balances: dict[str, Decimal] = {}
    for entry in entries:
        if isinstance(entry, Transaction):
            for posting in entry.postings:
                assert posting.units.currency == "SLE"
                amount = balances.get(posting.account, Decimal(0)) + posting.units.number
                balances[posting.account] = amount
    return balances


def sum_with_hledger(text: str, folder: Path) -> dict[str, Decimal]:
    assert HLEDGER is not None, "hledger is not installed"
    file = folder / "tapgate.journal"
    file.write_text(text)
    subprocess.run([HLEDGER, "-f", file, "check", "--strict"], check=True, timeout=60)
    report = subprocess.run(
        [HLEDGER, "-f", file, "balance", "--flat", "--no-total", "-O", "csv"],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    rows = csv.DictReader(io.StringIO(report.stdout))
    return {row["account"]: Decimal(row["balance"].removesuffix(" SLE")) for row in rows}


@pytest.mark.parametrize(
    ("program", "sum_balances"),
    [
        ("beancount", sum_with_beancount),
        pytest.param(
            "hledger",
            sum_with_hledger,
            marks=pytest.mark.skipif(
                HLEDGER is None and os.environ.get("TAPGATE_TEST_HLEDGER") != "required",
                reason="hledger is not installed",
            ),
        ),
    ],
)
async def test_accounting_program_reaches_the_same_trial_balance(
    harness: Harness,
    tmp_path: Path,
    program: str,
    sum_balances: Callable[[str, Path], dict[str, Decimal]],
) -> None:
    code = {"data": [{"kind": "fees", "gl_code": "I.40.1", "name": 'Fees; "all" of them'}]}
    response = await harness.client.put(
        "/api/v1/ledger/gl-codes", json=code, auth=await harness.create_admin("F")
    )
    assert response.status_code == 200, response.text
    days = await make_transactions(harness)
    # Files of one day, and of several days, can be joined.
    files = [await get_journal(harness, day, format=program, limit=2) for day in days]
    balances = sum_balances("".join(files), tmp_path)
    trial_balance = await get_report(harness, "trial-balance", as_of=days[-1])
    expected = {
        row["gl_code"].replace(".", "-"): Decimal(row["debit"]) - Decimal(row["credit"])
        for row in trial_balance["rows"]
    }
    found = {account.partition(":")[2]: amount for account, amount in balances.items()}
    assert found == {code: amount for code, amount in expected.items() if amount}
    assert {account.partition(":")[0] for account in balances} == {
        "Assets", "Liabilities", "Income", "Expenses",
    }  # fmt: skip


def test_every_kind_and_type_has_a_place_in_the_journal() -> None:
    assert set(ROOTS) == set(AccountKind)
    assert set(DESCRIPTIONS) == set(chart.TRANSACTION_TYPES)


@pytest.mark.parametrize("currency", ["SLE", "XOF", "TND"])
def test_journal_in_other_currencies(currency: str, tmp_path: Path) -> None:
    """Both programs read amounts without decimals and with three."""
    codes = [
        GlCode(kind="cash", gl_code="1000", name="Cash"),
        GlCode(kind="wallet", gl_code="2100", name="Wallets"),
    ]
    entry = {
        "transaction_id": 7, "position": 0, "amount": 1_234_567, "debit_account": 1,
        "debit_kind": "cash", "credit_account": 2, "credit_kind": "wallet", "type": "transfer",
        "original_id": None, "completed_at": datetime(2026, 1, 31, tzinfo=UTC), "reference": "",
    }  # fmt: skip
    scale = {"SLE": 2, "XOF": 0, "TND": 3}[currency]
    expected = Decimal(1_234_567).scaleb(-scale)

    def render(format: str) -> str:
        builder = BUILDERS[format](codes, currency, ZoneInfo("UTC"))
        return (builder.render_opening() + builder.render_entries([entry], is_first=True)).decode()

    entries, errors, _ = loader.load_string(render("beancount"))
    assert errors == []
    (transaction,) = [entry for entry in entries if isinstance(entry, Transaction)]
    assert transaction.postings[0].units.number == expected
    if HLEDGER is not None:
        file = tmp_path / "tapgate.journal"
        file.write_text(render("hledger"))
        subprocess.run([HLEDGER, "-f", file, "check", "--strict"], check=True, timeout=60)
