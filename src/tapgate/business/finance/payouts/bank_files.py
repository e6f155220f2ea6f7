"""Bank files of payout runs: pain.001.001.09 and CSV.

A file depends only on what never changes: the run, the amounts and references of its payouts, and
the bank accounts, of which only the status changes. So it is the same at every download.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

from tapgate.business.finance.payouts import queries
from tapgate.business.finance.payouts.model import PayoutRun
from tapgate.http.api import csv_files
from tapgate_client import ids, money
from tapgate_client.clock import format_rfc3339
from tapgate_client.schemas.payouts import PayoutFileFormat

_NAMESPACE: Final = "urn:iso:std:iso:20022:tech:xsd:pain.001.001.09"
_XML_CONTENT_TYPE: Final = "application/xml"
_IBAN: Final = re.compile(r"[A-Z]{2}[0-9]{2}[0-9A-Z]{11,30}", re.ASCII)
_BIC: Final = re.compile(r"[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?", re.ASCII)
#: Characters that XML cannot contain, even escaped.
_NO_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CSV_COLUMNS: Final = (
    "reference", "holder_name", "bank_code", "bank_name", "number", "amount", "currency",
)  # fmt: skip


class BankFile(NamedTuple):
    name: str
    content: bytes
    content_type: str


class _Payment(NamedTuple):
    reference: str
    amount: int
    holder_name: str
    bank_code: str
    bank_name: str | None
    number: str


async def load_file(reader: Any, run_id: int, file_format: str) -> BankFile:
    """Return the bank file of a run, or raise 404."""
    run = await queries.get_run(reader, run_id)
    debtor = await reader.fetchval("SELECT debtor FROM payout_runs WHERE id = $1", run_id)
    rows = await reader.fetch(
        """SELECT p.reference, p.amount, b.holder_name, b.bank_code, b.bank_name, b.number
           FROM payouts p JOIN bank_accounts b ON b.id = p.bank_account_id
           WHERE p.run_id = $1 ORDER BY p.id""",
        run_id,
    )
    payments = [_Payment(*row) for row in rows]
    name = ids.encode(ids.PAYOUT_RUN, run_id)
    if file_format == PayoutFileFormat.CSV:
        return BankFile(f"{name}.csv", _render_csv(run, payments), csv_files.CONTENT_TYPE)
    return BankFile(f"{name}.xml", _render_pain(run, debtor, payments), _XML_CONTENT_TYPE)


def _render_csv(run: PayoutRun, payments: Sequence[_Payment]) -> bytes:
    rows = [
        [
            payment.reference,
            payment.holder_name,
            payment.bank_code,
            payment.bank_name or "",
            payment.number,
            money.format_decimal(payment.amount, run.currency),
            run.currency,
        ]
        for payment in payments
    ]
    return csv_files.render_file(_CSV_COLUMNS) + csv_files.render_rows(rows)


def _render_pain(run: PayoutRun, debtor: dict[str, str], payments: Sequence[_Payment]) -> bytes:
    message_id = ids.encode(ids.PAYOUT_RUN, run.id)
    created_at = format_rfc3339(run.created_at)
    sums = (
        f"<NbOfTxs>{run.payouts}</NbOfTxs>"
        f"<CtrlSum>{money.format_decimal(run.total, run.currency)}</CtrlSum>"
    )
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<Document xmlns="{_NAMESPACE}">',
        "<CstmrCdtTrfInitn>",
        f"<GrpHdr><MsgId>{message_id}</MsgId><CreDtTm>{created_at}</CreDtTm>{sums}"
        f"<InitgPty>{_render_name(debtor['name'])}</InitgPty></GrpHdr>",
        f"<PmtInf><PmtInfId>{message_id}</PmtInfId><PmtMtd>TRF</PmtMtd>{sums}",
        f"<ReqdExctnDt><Dt>{created_at[:10]}</Dt></ReqdExctnDt>",
        f"<Dbtr>{_render_name(debtor['name'])}</Dbtr>",
        f"<DbtrAcct>{_render_account(debtor['number'])}<Ccy>{run.currency}</Ccy></DbtrAcct>",
        f"<DbtrAgt>{_render_bank(debtor['bank_code'])}</DbtrAgt>",
        *_iter_payments(run, payments),
        "</PmtInf>",
        "</CstmrCdtTrfInitn>",
        "</Document>",
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def _iter_payments(run: PayoutRun, payments: Sequence[_Payment]) -> Iterator[str]:
    for payment in payments:
        amount = money.format_decimal(payment.amount, run.currency)
        yield (
            f"<CdtTrfTxInf><PmtId><InstrId>{payment.reference}</InstrId>"
            f"<EndToEndId>{payment.reference}</EndToEndId></PmtId>"
            f'<Amt><InstdAmt Ccy="{run.currency}">{amount}</InstdAmt></Amt>'
            f"<CdtrAgt>{_render_bank(payment.bank_code)}</CdtrAgt>"
            f"<Cdtr>{_render_name(payment.holder_name)}</Cdtr>"
            f"<CdtrAcct>{_render_account(payment.number)}</CdtrAcct>"
            f"<RmtInf><Ustrd>{payment.reference}</Ustrd></RmtInf></CdtTrfTxInf>"
        )


def _render_name(name: str) -> str:
    return f"<Nm>{escape(_NO_XML.sub(' ', name))}</Nm>"


def _render_account(number: str) -> str:
    if is_iban(number):
        return f"<Id><IBAN>{number}</IBAN></Id>"
    return f"<Id><Othr><Id>{escape(number)}</Id></Othr></Id>"


def _render_bank(code: str) -> str:
    if _BIC.fullmatch(code):
        return f"<FinInstnId><BICFI>{code}</BICFI></FinInstnId>"
    return f"<FinInstnId><ClrSysMmbId><MmbId>{escape(code)}</MmbId></ClrSysMmbId></FinInstnId>"


def is_iban(number: str) -> bool:
    """Return whether a number is an IBAN with a correct check sum."""
    if _IBAN.fullmatch(number) is None:
        return False
    digits = "".join(str(int(letter, 36)) for letter in number[4:] + number[:4])
    return int(digits) % 97 == 1
