"""Journal as a PDF file, with the debit and the credit of each entry as rows."""

from collections.abc import Sequence
from typing import Any, Final

from tapgate.business.branding.model import Branding
from tapgate.business.finance.general_ledger.journal_formats import JournalBuilder
from tapgate.business.finance.reports.documents import Column, Document
from tapgate.business.finance.reports.files import PDF_CONTENT_TYPE

_COLUMNS: Final = (
    Column("date", "Date", 3),
    Column("transaction_id", "Transaction", 5),
    Column("gl_code", "GL code", 2),
    Column("description", "Description", 7),
    Column("reference", "Reference", 5),
    Column("debit", "Debit", 4, is_amount=True),
    Column("credit", "Credit", 4, is_amount=True),
)


class PdfJournalBuilder(JournalBuilder):
    """Collects the rows of all pages. Set `branding` and `period` before the ending."""

    content_type = PDF_CONTENT_TYPE
    extension = "pdf"
    branding: Branding
    period: str

    def render_opening(self) -> bytes:
        self._rows: list[tuple[str, ...]] = []
        return b""

    def render_entries(self, entries: Sequence[Any], *, is_first: bool) -> bytes:
        self._rows += [
            tuple(str(getattr(row, column.name)) for column in _COLUMNS)
            for row in self.build_rows(entries)
        ]
        return b""

    def render_ending(self, next_cursor: str | None) -> bytes:
        # reportlab takes long to import, so only processes that render a PDF file import it.
        from tapgate.business.finance.reports import pdf_table  # noqa: PLC0415

        document = Document(
            "Journal", self.period, self._currency, _COLUMNS, self._rows, bold_rows=()
        )
        return pdf_table.render(document, self.branding)
