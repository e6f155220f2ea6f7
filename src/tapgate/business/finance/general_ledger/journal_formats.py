"""Journal files: JSON, CSV, hledger and Beancount.

Each format has an opening, rows page by page, and an ending. Descriptions contain no personal data:
they state only the transaction's type. References are caller-supplied text, so each format escapes
them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

import msgspec

from tapgate.business.finance.general_ledger.model import ROOTS
from tapgate.http.api import csv_files
from tapgate.ledger import chart
from tapgate_client import ids, money
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.general_ledger import AccountKind, GlCode, JournalFormat, JournalRow

_JSON_CONTENT_TYPE: Final = "application/json"
_TEXT_CONTENT_TYPE: Final = "text/plain; charset=utf-8"
_COLUMNS: Final = JournalRow.__struct_fields__
_get_cells = attrgetter(*_COLUMNS)

#: Reference characters that are percent-encoded in an hledger tag.
_ESCAPED_IN_TAGS: Final = re.compile(r"[^\w./#+-]+|^[.+-]")
_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
DESCRIPTIONS: Final[Mapping[str, str]] = {
    chart.TRANSFER_P2P: "Transfer between customers",
    chart.TRANSFER: "Manual transfer",
    chart.AGENT_CASHIN: "Cash-in",
    chart.AGENT_CASHOUT: "Cash-out",
    chart.AGENT_FUND: "Float top-up",
    chart.AGENT_TRANSFER: "Float transfer",
    chart.COMMISSION_PAYOUT: "Commission payout",
    chart.POS_PAYMENT: "Card payment",
    chart.ONLINE_PAYMENT: "Online payment",
    chart.PARTNER_FUND: "Partner top-up",
    chart.PARTNER_DEPOSIT: "Partner deposit",
    chart.PROCESSOR_TRANSFER: "Merchant payout",
    chart.REFUND: "Refund",
    chart.REVERSAL: "Reversal",
    chart.PAYOUT: "Payout",
    chart.PAYOUT_RETURN: "Payout return",
    chart.BATCH_CREDIT: "Batch payment",
    chart.BANK_POSTING: "Bank posting",
}


def to_account_component(gl_code: str) -> str:
    """Return a GL code as part of an account name. Beancount does not allow dots."""
    return gl_code.replace(".", "-")


class JournalBuilder:
    """Builds journal rows. Dates are days of completion in `zone`."""

    content_type = _JSON_CONTENT_TYPE
    extension = "json"

    def __init__(self, codes: Sequence[GlCode], currency: str, zone: ZoneInfo) -> None:
        self._codes = codes
        self._codes_by_kind = {code.kind: code.gl_code for code in codes}
        self._currency = currency
        self._zone = zone
        self._zero = money.format_decimal(0, currency)

    def format_day(self, entry: Any) -> str:
        return get_platform_day(entry["completed_at"], self._zone).isoformat()

    def render_opening(self) -> bytes:
        return b'{"data":['

    def render_entries(self, entries: Sequence[Any], *, is_first: bool) -> bytes:
        """Render whole transactions, which follow the transactions from earlier calls."""
        rows = b",".join(map(msgspec.json.encode, self.build_rows(entries)))
        return rows if is_first or not rows else b"," + rows

    def render_ending(self, next_cursor: str | None) -> bytes:
        end = {"has_more": next_cursor is not None, "next_cursor": next_cursor}
        return b"]," + msgspec.json.encode(end)[1:]

    def build_rows(self, entries: Iterable[Any]) -> Iterable[JournalRow]:
        """Yield the debit and then the credit of each entry."""
        for entry in entries:
            amount = money.format_decimal(entry["amount"], self._currency)
            day = self.format_day(entry)
            for side, debit, credit in (
                ("debit", amount, self._zero),
                ("credit", self._zero, amount),
            ):
                yield JournalRow(
                    date=day,
                    transaction_id=ids.encode(ids.TRANSACTION, entry["transaction_id"]),
                    entry=entry["position"],
                    gl_code=self._codes_by_kind[entry[f"{side}_kind"]],
                    account_id=ids.encode(ids.ACCOUNT, entry[f"{side}_account"]),
                    debit=debit,
                    credit=credit,
                    description=_describe(entry),
                    reference=entry["reference"],
                )


class CsvJournalBuilder(JournalBuilder):
    content_type = csv_files.CONTENT_TYPE
    extension = "csv"

    def render_opening(self) -> bytes:
        return csv_files.render_file(_COLUMNS)

    def render_entries(self, entries: Sequence[Any], *, is_first: bool) -> bytes:
        return csv_files.render_rows(
            [str(cell) for cell in _get_cells(row)] for row in self.build_rows(entries)
        )

    def render_ending(self, next_cursor: str | None) -> bytes:
        return b""


class _AccountingBuilder(CsvJournalBuilder):
    """Builder for plain-text accounting programs, in which a debit is positive."""

    content_type = _TEXT_CONTENT_TYPE

    def render_entries(self, entries: Sequence[Any], *, is_first: bool) -> bytes:
        accounts = {kind: self.get_account(kind) for kind in self._codes_by_kind}
        lines: list[str] = []
        for _, group in groupby(entries, key=lambda entry: entry["transaction_id"]):
            transaction = list(group)
            lines += ["", *self.format_head(transaction[0])]
            for entry in transaction:
                amount = money.format_decimal(entry["amount"], self._currency)
                for side, sign in (("debit", ""), ("credit", "-")):
                    account_id = ids.encode(ids.ACCOUNT, entry[f"{side}_account"])
                    posting = f"{accounts[entry[f'{side}_kind']]}  {sign}{amount} {self._currency}"
                    lines += self.format_posting(posting, account_id)
        return "".join(f"{line}\n" for line in lines).encode()

    def get_account(self, kind: AccountKind) -> str:
        return f"{ROOTS[kind]}:{to_account_component(self._codes_by_kind[kind])}"

    def format_head(self, entry: Any) -> list[str]:
        """Return a transaction's lines before its postings."""
        raise NotImplementedError

    def format_posting(self, posting: str, account_id: str) -> list[str]:
        """Return a posting's lines."""
        raise NotImplementedError


class HledgerJournalBuilder(_AccountingBuilder):
    extension = "journal"

    def render_opening(self) -> bytes:
        # hledger requires a decimal mark in a commodity format, even without decimals.
        whole, _, decimals = self._zero.partition(".")
        sample = f"1{3 * whole}.{decimals}"
        lines = ["decimal-mark .", f"commodity {sample} {self._currency}"]
        lines += [f"account {self.get_account(code.kind)}  ; {code.name}" for code in self._codes]
        return "".join(f"{line}\n" for line in lines).encode()

    def format_head(self, entry: Any) -> list[str]:
        transaction_id = ids.encode(ids.TRANSACTION, entry["transaction_id"])
        head = f"{self.format_day(entry)} * ({transaction_id}) {_describe(entry)}"
        # hledger reads dates and tags in comments, and ends the value of a tag at a comma.
        reference = _ESCAPED_IN_TAGS.sub(lambda match: quote(match[0], safe=""), entry["reference"])
        return [head, f"    ; reference:{reference}"] if reference else [head]

    def format_posting(self, posting: str, account_id: str) -> list[str]:
        return [f"    {posting}  ; account:{account_id}"]


class BeancountJournalBuilder(_AccountingBuilder):
    extension = "beancount"

    def render_opening(self) -> bytes:
        # With the plugin, files have no `open` directives, so files of several days can be joined.
        lines = ['plugin "beancount.plugins.auto_accounts"']
        lines += [f"; {self.get_account(code.kind)}: {code.name}" for code in self._codes]
        return "".join(f"{line}\n" for line in lines).encode()

    def format_head(self, entry: Any) -> list[str]:
        transaction_id = ids.encode(ids.TRANSACTION, entry["transaction_id"])
        head = f'{self.format_day(entry)} * "{_describe(entry)}" ^{transaction_id}'
        reference = _CONTROL_CHARACTERS.sub(" ", entry["reference"])
        reference = reference.replace("\\", "\\\\").replace('"', '\\"')
        return [head, f'  reference: "{reference}"'] if reference else [head]

    def format_posting(self, posting: str, account_id: str) -> list[str]:
        return [f"  {posting}", f'    account-id: "{account_id}"']


#: Builders of text files. `journal_pdf` has another.
BUILDERS: Final[dict[JournalFormat, type[JournalBuilder]]] = {
    JournalFormat.JSON: JournalBuilder,
    JournalFormat.CSV: CsvJournalBuilder,
    JournalFormat.HLEDGER: HledgerJournalBuilder,
    JournalFormat.BEANCOUNT: BeancountJournalBuilder,
}


def _describe(entry: Any) -> str:
    description = DESCRIPTIONS[entry["type"]]
    if entry["original_id"] is None:
        return description
    return f"{description} of {ids.encode(ids.TRANSACTION, entry['original_id'])}"
