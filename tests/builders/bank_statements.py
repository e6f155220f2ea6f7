"""Bank statements over HTTP, and small statement files."""

import itertools
from collections.abc import Iterable
from typing import Any

import httpx2

from harness import BearerAuth, Harness

STATEMENTS_URL = "/api/v1/bank-statements"
LINES_URL = f"{STATEMENTS_URL}/lines"
_numbers = itertools.count(1)

CSV_HEADER = "date,amount,reference,description"


def build_csv(*lines: tuple[str, str, str, str]) -> str:
    """Return a CSV statement of lines (date, amount, reference, description)."""
    return "\n".join([CSV_HEADER, *(",".join(line) for line in lines), ""])


def build_camt(
    entries: str,
    *,
    account: str = "GB33BUKB20201555555555",
    opening: tuple[str, str] | None = None,
    closing: tuple[str, str] | None = None,
    version: str = "08",
    currency: str = "SLE",
) -> str:
    """Return a camt.053 statement. A balance is (amount with a sign, date)."""
    balances = "".join(
        build_camt_balance(code, *balance, currency)
        for code, balance in (("OPBD", opening), ("CLBD", closing))
        if balance is not None
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.{version}">\n'
        "<BkToCstmrStmt><GrpHdr><MsgId>M</MsgId></GrpHdr>"
        f"<Stmt><Id>{next(_numbers)}</Id>"
        f"<Acct><Id><IBAN>{account}</IBAN></Id></Acct>{balances}\n{entries}\n"
        "</Stmt></BkToCstmrStmt></Document>"
    )


def build_camt_balance(code: str, amount: str, day: str, currency: str = "SLE") -> str:
    side = "DBIT" if amount.startswith("-") else "CRDT"
    return (
        f"<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp>"
        f'<Amt Ccy="{currency}">{amount.removeprefix("-")}</Amt><CdtDbtInd>{side}</CdtDbtInd>'
        f"<Dt><Dt>{day}</Dt></Dt></Bal>"
    )


def build_camt_entry(
    amount: str, day: str, reference: str, *, status: str = "<Cd>BOOK</Cd>", currency: str = "SLE"
) -> str:
    side = "DBIT" if amount.startswith("-") else "CRDT"
    return (
        f'<Ntry><Amt Ccy="{currency}">{amount.removeprefix("-")}</Amt>'
        f"<CdtDbtInd>{side}</CdtDbtInd><Sts>{status}</Sts><BookgDt><Dt>{day}</Dt></BookgDt>"
        f"<NtryDtls><TxDtls><Refs><EndToEndId>{reference}</EndToEndId></Refs></TxDtls></NtryDtls>"
        "</Ntry>"
    )


def build_mt940(items: Iterable[str], *, account: str = "SLCBSLFR/00012345") -> str:
    return "\r\n".join([
        ":20:STARTUMS", f":25:{account}", ":28C:00001/001", ":60F:C260101SLE0,00",
        *items, ":62F:C260131SLE0,00", "-", "",
    ])  # fmt: skip


async def post_statement(
    harness: Harness,
    content: str | bytes,
    auth: BearerAuth | None = None,
    *,
    key: str | None = None,
    **query: str,
) -> httpx2.Response:
    return await harness.post(
        STATEMENTS_URL,
        content=content.encode() if isinstance(content, str) else content,
        params=query,
        headers={} if key is None else {"Idempotency-Key": key},
        auth=auth or await harness.create_admin("F"),
    )


async def import_statement(harness: Harness, content: str | bytes, **query: str) -> dict[str, Any]:
    response = await post_statement(harness, content, **query)
    assert response.status_code == 201, response.text
    record: dict[str, Any] = response.json()
    return record


async def create_open_line(harness: Harness, amount: str) -> str:
    """Import a line long before everything it could be matched with; return its ID."""
    await import_statement(
        harness, build_csv(("2026-01-15", amount, f"B-{next(_numbers)}", "item"))
    )
    line_id: str = (await list_lines(harness, status="unmatched"))[-1]["id"]
    return line_id


async def list_lines(harness: Harness, **query: str) -> list[dict[str, Any]]:
    """Return lines, oldest first."""
    response = await harness.get(LINES_URL, params=query, auth=await harness.create_admin("F"))
    assert response.status_code == 200, response.text
    return list(reversed(response.json()["data"]))


async def change_line(
    harness: Harness, line_id: str, verb: str, auth: BearerAuth | None = None, **fields: Any
) -> httpx2.Response:
    return await harness.post(
        f"{LINES_URL}/{line_id}/{verb}", json=fields, auth=auth or await harness.create_admin("F")
    )
