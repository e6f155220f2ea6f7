"""A statement as PDF: drawn page by page, the same bytes whenever it is drawn."""

import io
from datetime import date
from itertools import islice
from typing import Final

from reportlab import rl_config
from reportlab.lib.colors import Color, HexColor
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from tapgate import ids
from tapgate.wallets.statements.model import Line, Statement
from tapgate.wallets.statements.typesetting import BOLD, REGULAR, drawable, fitted

CONTENT_TYPE: Final = "application/pdf"

# A file of bytes, not of letters: a quarter smaller.
rl_config.useA85 = 0

_WIDTH, _HEIGHT = A4
_MARGIN: Final = 42.0
_LEFT, _RIGHT = _MARGIN, _WIDTH - _MARGIN
_TOP: Final = _HEIGHT - 46
_BOTTOM: Final = 58.0
_ROW: Final = 23.0
_HEADER_ROW: Final = 20.0

_INK: Final = HexColor("#16202c")
_QUIET: Final = HexColor("#66717f")
_RULE: Final = HexColor("#d7dce2")
_SHADE: Final = HexColor("#f3f5f8")
_ACCENT: Final = HexColor("#0b4f6c")
_PAPER: Final = HexColor("#ffffff")

#: Where the columns of the table begin, and where those of money end.
_DATE: Final = _LEFT + 6
_DESCRIPTION: Final = _LEFT + 76
_DEBIT: Final = _RIGHT - 172
_CREDIT: Final = _RIGHT - 90
_BALANCE: Final = _RIGHT - 6
_DESCRIPTION_WIDTH: Final = _DEBIT - 76 - _DESCRIPTION

_FIRST_TABLE_TOP: Final = _TOP - 208
_NEXT_TABLE_TOP: Final = _TOP - 34
_ROWS_FIRST: Final = int((_FIRST_TABLE_TOP - _HEADER_ROW - _BOTTOM) // _ROW)
_ROWS_NEXT: Final = int((_NEXT_TABLE_TOP - _HEADER_ROW - _BOTTOM) // _ROW)


def rendered(statement: Statement) -> bytes:
    file = io.BytesIO()
    # Invariant: no time of drawing and no random identifier in the file.
    canvas = Canvas(file, pagesize=A4, pageCompression=1, invariant=1)
    _Drawing(canvas, statement).draw()
    canvas.save()
    return file.getvalue()


def page_count(rows: int) -> int:
    return 1 + max(0, -(-(rows - _ROWS_FIRST) // _ROWS_NEXT))


class _Drawing:
    def __init__(self, canvas: Canvas, statement: Statement) -> None:
        self._canvas = canvas
        self._statement = statement
        self._name = drawable(statement.holder_name)
        self._period = f"{_day(statement.period.first)} – {_day(statement.period.last)}"
        self._pages = page_count(len(statement.movements))
        self._colour: Color | None = None  # what is being filled with

    def draw(self) -> None:
        canvas, statement = self._canvas, self._statement
        canvas.setTitle(f"Account statement, {self._period}")
        canvas.setAuthor(self._name)
        canvas.setCreator("Tapgate")
        lines = iter(statement.lines())
        for page in range(1, self._pages + 1):
            if page == 1:
                self._head()
                self._summary()
                rows, top = _ROWS_FIRST, _FIRST_TABLE_TOP
            else:
                self._running_head()
                rows, top = _ROWS_NEXT, _NEXT_TABLE_TOP
            self._table(list(islice(lines, rows)), top)
            self._foot(page)
            canvas.showPage()
            self._colour = None

    def _head(self) -> None:
        statement = self._statement
        self._fill(_ACCENT)
        self._canvas.rect(0, _HEIGHT - 10, _WIDTH, 10, stroke=0, fill=1)
        self._write(_LEFT, _TOP - 18, "Account statement", BOLD, 19, _ACCENT)
        self._write(_LEFT, _TOP - 34, self._period, REGULAR, 10, _QUIET)
        quarter = (_RIGHT - _LEFT) / 4
        column = [_LEFT + place * quarter for place in range(4)]
        generated = statement.generated_at.astimezone(statement.zone)
        facts = (
            (0, 0, "Account holder", statement.holder_name, BOLD),
            (0, 1, "Phone", _masked(statement.phone_number), REGULAR),
            (1, 1, "Currency", statement.currency, REGULAR),
            (2, 0, "Account", ids.show(ids.ACCOUNT, statement.account_id), REGULAR),
            (2, 1, "Statement", ids.show(ids.STATEMENT, statement.id), REGULAR),
            (3, 1, "Generated", f"{generated:%d %b %Y %H:%M %Z}", REGULAR),
        )
        for place, row, label, value, font in facts:
            x, y = column[place], _TOP - 62 - 30 * row
            room = (2 if font == BOLD else 1) * quarter - 8
            self._write(x, y, label, REGULAR, 7, _QUIET)
            self._write(x, y - 13, fitted(value, font, 9, room), font, 9)

    def _summary(self) -> None:
        canvas, statement = self._canvas, self._statement
        top, height = _TOP - 124, 62
        self._fill(_SHADE)
        canvas.roundRect(_LEFT, top - height, _RIGHT - _LEFT, height, 4, stroke=0, fill=1)
        figures = (
            ("Opening balance", statement.opening_balance, _INK),
            ("Money in", statement.total_credits, _INK),
            ("Money out", statement.total_debits, _INK),
            ("Closing balance", statement.closing_balance, _ACCENT),
        )
        step = (_RIGHT - _LEFT) / len(figures)
        for place, (label, minor, colour) in enumerate(figures):
            x = _LEFT + place * step + 12
            self._write(x, top - 18, label, REGULAR, 7.5, _QUIET)
            self._write(x, top - 35, self._money(minor), BOLD, 11, colour)
        count = statement.transaction_count
        counted = "1 transaction" if count == 1 else f"{count:,} transactions"
        self._write(_LEFT + 12, top - 53, f"{counted} in this period", REGULAR, 7.5, _QUIET)

    def _running_head(self) -> None:
        room = (_RIGHT - _LEFT) / 2
        self._write(_LEFT, _TOP - 10, "Account statement", BOLD, 9.5, _ACCENT)
        right = f"{fitted(self._name, REGULAR, 8, room)} · {self._period}"
        self._write_right(_RIGHT, _TOP - 10, right, REGULAR, 8, _QUIET)

    def _table(self, lines: list[Line], top: float) -> None:
        canvas = self._canvas
        self._fill(_ACCENT)
        canvas.rect(_LEFT, top - _HEADER_ROW, _RIGHT - _LEFT, _HEADER_ROW, stroke=0, fill=1)
        y = top - 13
        self._write(_DATE, y, "Date", BOLD, 7.5, _PAPER)
        self._write(_DESCRIPTION, y, "Description", BOLD, 7.5, _PAPER)
        for x, word in ((_DEBIT, "Debit"), (_CREDIT, "Credit"), (_BALANCE, "Balance")):
            self._write_right(x, y, word, BOLD, 7.5, _PAPER)
        y = top - _HEADER_ROW
        bottoms = [y - _ROW * row for row in range(1, len(lines) + 1)]
        canvas.setStrokeColor(_RULE)
        canvas.setLineWidth(0.4)
        canvas.lines([(_LEFT, bottom, _RIGHT, bottom) for bottom in bottoms])
        for line, bottom in zip(lines, bottoms, strict=True):
            self._row(line, bottom + _ROW)
        if not self._statement.movements:
            self._write(_DATE, y - 15, "No money moved in this period.", REGULAR, 8.5, _QUIET)

    def _row(self, line: Line, top: float) -> None:
        movement, balance = line
        moved_at = movement.moved_at.astimezone(self._statement.zone)
        upper, lower = top - 10, top - 19
        words = fitted(movement.description, REGULAR, 8, _DESCRIPTION_WIDTH)
        small = f"{ids.show(ids.TRANSACTION, movement.transaction_id)} · {movement.type}"
        x = _CREDIT if movement.amount > 0 else _DEBIT
        self._write(_DATE, upper, _day(moved_at), REGULAR, 8)
        self._write(_DESCRIPTION, upper, words, REGULAR, 8)
        self._write_right(x, upper, self._money(abs(movement.amount)), REGULAR, 8)
        self._write_right(_BALANCE, upper, self._money(balance), BOLD, 8)
        self._write(_DATE, lower, f"{moved_at:%H:%M:%S}", REGULAR, 6.5, _QUIET)
        self._write(_DESCRIPTION, lower, small, REGULAR, 6.5, _QUIET)

    def _foot(self, page: int) -> None:
        canvas = self._canvas
        canvas.setStrokeColor(_RULE)
        canvas.setLineWidth(0.6)
        canvas.line(_LEFT, _BOTTOM - 12, _RIGHT, _BOTTOM - 12)
        y = _BOTTOM - 25
        zone = f"Times in {self._statement.zone.key}, amounts in {self._statement.currency}"
        self._write(_LEFT, y, zone, REGULAR, 7, _QUIET)
        self._write_right(_RIGHT, y, f"Page {page} of {self._pages}", REGULAR, 7, _QUIET)

    def _write(
        self, x: float, y: float, text: str, font: str, size: float, colour: Color = _INK
    ) -> None:
        self._use(font, size, colour)
        self._canvas.drawString(x, y, text)

    def _write_right(
        self, x: float, y: float, text: str, font: str, size: float, colour: Color = _INK
    ) -> None:
        self._use(font, size, colour)
        self._canvas.drawRightString(x, y, text)

    def _use(self, font: str, size: float, colour: Color) -> None:
        self._canvas.setFont(font, size)
        if colour is not self._colour:  # saying it again is most of the work of a long table
            self._colour = colour
            self._canvas.setFillColor(colour)

    def _fill(self, colour: Color) -> None:
        self._colour = colour
        self._canvas.setFillColor(colour)

    def _money(self, minor: int) -> str:
        """`1,234.50`"""
        sign, shown = ("-", -minor) if minor < 0 else ("", minor)
        whole, point, fraction = self._statement.money(shown).partition(".")
        return f"{sign}{int(whole):,}{point}{fraction}"


def _day(moment: date) -> str:
    return f"{moment:%d %b %Y}"


def _masked(phone_number: str) -> str:
    """Enough to recognise one's own: `+232*****456`."""
    return f"{phone_number[:4]}{'*' * (len(phone_number) - 7)}{phone_number[-3:]}"
