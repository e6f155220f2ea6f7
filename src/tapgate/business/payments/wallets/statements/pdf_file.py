"""Statement as a PDF file. Rendering is deterministic: the same statement gives the same bytes."""

import io
from datetime import date
from itertools import islice
from typing import Final

from reportlab import rl_config
from reportlab.lib.colors import Color, HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from tapgate.business.branding.model import Branding
from tapgate.business.payments.wallets.statements.model import Statement, StatementLine
from tapgate.business.payments.wallets.statements.typesetting import (
    BOLD,
    REGULAR,
    replace_missing_glyphs,
    truncate_to_width,
)
from tapgate.core.phone_numbers import mask_phone_number
from tapgate_client import ids

# Write binary streams: ASCII85 encoding would make them a quarter larger.
rl_config.useA85 = 0

_WIDTH, _HEIGHT = A4
_MARGIN: Final = 42.0
_LEFT, _RIGHT = _MARGIN, _WIDTH - _MARGIN
_TOP: Final = _HEIGHT - 46
_BOTTOM: Final = 58.0
_ROW_HEIGHT: Final = 23.0
_HEADER_HEIGHT: Final = 20.0

#: Colors from the console's light theme.
_TEXT_COLOR: Final = HexColor("#161b24")
_MUTED_COLOR: Final = HexColor("#545c69")
_LINE_COLOR: Final = HexColor("#e2e6eb")
_SHADE_COLOR: Final = HexColor("#f6f7f9")
_WHITE: Final = HexColor("#ffffff")

#: Left edges for the date and description columns, right edges for the money columns.
_DATE_X: Final = _LEFT + 6
_DESCRIPTION_X: Final = _LEFT + 76
_DEBIT_X: Final = _RIGHT - 172
_CREDIT_X: Final = _RIGHT - 90
_BALANCE_X: Final = _RIGHT - 6
_DESCRIPTION_WIDTH: Final = _DEBIT_X - 76 - _DESCRIPTION_X

_LOGO_WIDTH, _LOGO_HEIGHT = 130.0, 22.0
_MAX_HEADER_LINES: Final = 3

_FIRST_TABLE_TOP: Final = _TOP - 208
_NEXT_TABLE_TOP: Final = _TOP - 34
_FIRST_PAGE_ROWS: Final = int((_FIRST_TABLE_TOP - _HEADER_HEIGHT - _BOTTOM) // _ROW_HEIGHT)
_NEXT_PAGE_ROWS: Final = int((_NEXT_TABLE_TOP - _HEADER_HEIGHT - _BOTTOM) // _ROW_HEIGHT)


def render(statement: Statement, branding: Branding) -> bytes:
    file = io.BytesIO()
    # `invariant` writes a fixed creation date and no random ID.
    canvas = Canvas(file, pagesize=A4, pageCompression=1, invariant=1)
    _PdfRenderer(canvas, statement, branding).render()
    canvas.save()
    return file.getvalue()


def count_pages(rows: int) -> int:
    return 1 + max(0, -(-(rows - _FIRST_PAGE_ROWS) // _NEXT_PAGE_ROWS))


class _PdfRenderer:
    def __init__(self, canvas: Canvas, statement: Statement, branding: Branding) -> None:
        self._canvas = canvas
        self._statement = statement
        self._branding = branding
        self._accent_color = HexColor(branding.color)
        self._name = replace_missing_glyphs(statement.holder_name)
        self._period = (
            f"{_format_day(statement.period.first)} – {_format_day(statement.period.last)}"
        )
        self._page_count = count_pages(len(statement.movements))
        self._fill_color: Color | None = None  # canvas's current fill color

    def render(self) -> None:
        canvas, statement = self._canvas, self._statement
        canvas.setTitle(f"Account statement, {self._period}")
        canvas.setAuthor(self._name)
        canvas.setCreator(replace_missing_glyphs(self._branding.name))
        lines = iter(statement.iter_lines())
        for page in range(1, self._page_count + 1):
            self._set_fill_color(self._accent_color)
            canvas.rect(0, _HEIGHT - 10, _WIDTH, 10, stroke=0, fill=1)
            if page == 1:
                self._draw_header()
                self._draw_summary()
                rows, top = _FIRST_PAGE_ROWS, _FIRST_TABLE_TOP
            else:
                self._draw_running_header()
                rows, top = _NEXT_PAGE_ROWS, _NEXT_TABLE_TOP
            self._draw_table(list(islice(lines, rows)), top)
            self._draw_footer(page)
            canvas.showPage()
            self._fill_color = None

    def _draw_header(self) -> None:
        statement = self._statement
        self._draw_text(_LEFT, _TOP - 18, "Account statement", BOLD, 19, self._accent_color)
        self._draw_text(_LEFT, _TOP - 34, self._period, REGULAR, 10, _MUTED_COLOR)
        self._draw_operator()
        column_width = (_RIGHT - _LEFT) / 4
        column_lefts = [_LEFT + column * column_width for column in range(4)]
        generated = statement.generated_at.astimezone(statement.zone)
        if statement.phone_number is None:
            contact = ("Holder", statement.holder_id)
        else:
            contact = ("Phone", mask_phone_number(statement.phone_number))
        fields = (
            (0, 0, "Account holder", statement.holder_name, BOLD),
            (0, 1, *contact, REGULAR),
            (1, 1, "Currency", statement.currency, REGULAR),
            (2, 0, "Account", ids.encode(ids.ACCOUNT, statement.account_id), REGULAR),
            (2, 1, "Statement", ids.encode(ids.STATEMENT, statement.id), REGULAR),
            (3, 1, "Generated", f"{generated:%d %b %Y %H:%M %Z}", REGULAR),
        )
        for column, row, label, value, font in fields:
            x, y = column_lefts[column], _TOP - 62 - 30 * row
            max_width = (2 if font == BOLD else 1) * column_width - 8
            self._draw_text(x, y, label, REGULAR, 7, _MUTED_COLOR)
            self._draw_text(x, y - 13, truncate_to_width(value, font, 9, max_width), font, 9)

    def _draw_operator(self) -> None:
        """Draw the logo, the operator's name and the statement header, aligned to the right."""
        branding, y = self._branding, _TOP - 12
        if branding.logo is not None:
            self._canvas.drawImage(
                ImageReader(io.BytesIO(branding.logo)),
                _RIGHT - _LOGO_WIDTH,
                _TOP - _LOGO_HEIGHT,
                _LOGO_WIDTH,
                _LOGO_HEIGHT,
                mask="auto",
                preserveAspectRatio=True,
                anchor="e",
            )
            y -= 18
        max_width = (_RIGHT - _LEFT) / 2
        name = truncate_to_width(branding.name, BOLD, 8, max_width)
        self._draw_text_right(_RIGHT, y, name, BOLD, 8)
        lines = (branding.statement_header or "").splitlines()[:_MAX_HEADER_LINES]
        for number, line in enumerate(lines, start=1):
            text = truncate_to_width(line, REGULAR, 6.5, max_width)
            self._draw_text_right(_RIGHT, y - 8 * number, text, REGULAR, 6.5, _MUTED_COLOR)

    def _draw_summary(self) -> None:
        canvas, statement = self._canvas, self._statement
        top, height = _TOP - 124, 62
        self._set_fill_color(_SHADE_COLOR)
        canvas.roundRect(_LEFT, top - height, _RIGHT - _LEFT, height, 4, stroke=0, fill=1)
        totals = (
            ("Opening balance", statement.opening_balance, _TEXT_COLOR),
            ("Money in", statement.total_credits, _TEXT_COLOR),
            ("Money out", statement.total_debits, _TEXT_COLOR),
            ("Closing balance", statement.closing_balance, self._accent_color),
        )
        column_width = (_RIGHT - _LEFT) / len(totals)
        for index, (label, minor, color) in enumerate(totals):
            x = _LEFT + index * column_width + 12
            self._draw_text(x, top - 18, label, REGULAR, 7.5, _MUTED_COLOR)
            self._draw_text(x, top - 35, self._format_amount(minor), BOLD, 11, color)
        count = statement.transaction_count
        count_text = "1 transaction" if count == 1 else f"{count:,} transactions"
        self._draw_text(
            _LEFT + 12, top - 53, f"{count_text} in this period", REGULAR, 7.5, _MUTED_COLOR
        )

    def _draw_running_header(self) -> None:
        max_width = (_RIGHT - _LEFT) / 2
        self._draw_text(_LEFT, _TOP - 8, "Account statement", BOLD, 9.5, self._accent_color)
        text = f"{truncate_to_width(self._name, REGULAR, 8, max_width)} · {self._period}"
        self._draw_text(_LEFT, _TOP - 21, text, REGULAR, 8, _MUTED_COLOR)
        operator = truncate_to_width(self._branding.name, BOLD, 8, max_width)
        self._draw_text_right(_RIGHT, _TOP - 8, operator, BOLD, 8)

    def _draw_table(self, lines: list[StatementLine], top: float) -> None:
        canvas = self._canvas
        self._set_fill_color(self._accent_color)
        canvas.rect(_LEFT, top - _HEADER_HEIGHT, _RIGHT - _LEFT, _HEADER_HEIGHT, stroke=0, fill=1)
        y = top - 13
        self._draw_text(_DATE_X, y, "Date", BOLD, 7.5, _WHITE)
        self._draw_text(_DESCRIPTION_X, y, "Description", BOLD, 7.5, _WHITE)
        for x, label in ((_DEBIT_X, "Debit"), (_CREDIT_X, "Credit"), (_BALANCE_X, "Balance")):
            self._draw_text_right(x, y, label, BOLD, 7.5, _WHITE)
        y = top - _HEADER_HEIGHT
        bottoms = [y - _ROW_HEIGHT * row for row in range(1, len(lines) + 1)]
        canvas.setStrokeColor(_LINE_COLOR)
        canvas.setLineWidth(0.4)
        canvas.lines([(_LEFT, bottom, _RIGHT, bottom) for bottom in bottoms])
        for line, bottom in zip(lines, bottoms, strict=True):
            self._draw_row(line, bottom + _ROW_HEIGHT)
        if not self._statement.movements:
            self._draw_text(
                _DATE_X, y - 15, "No transactions in this period.", REGULAR, 8.5, _MUTED_COLOR
            )

    def _draw_row(self, line: StatementLine, top: float) -> None:
        movement, balance = line
        moved_at = movement.moved_at.astimezone(self._statement.zone)
        upper, lower = top - 10, top - 19
        description = truncate_to_width(movement.description, REGULAR, 8, _DESCRIPTION_WIDTH)
        details = ids.encode(ids.TRANSACTION, movement.transaction_id)
        x = _CREDIT_X if movement.amount > 0 else _DEBIT_X
        self._draw_text(_DATE_X, upper, _format_day(moved_at), REGULAR, 8)
        self._draw_text(_DESCRIPTION_X, upper, description, REGULAR, 8)
        self._draw_text_right(x, upper, self._format_amount(abs(movement.amount)), REGULAR, 8)
        self._draw_text_right(_BALANCE_X, upper, self._format_amount(balance), BOLD, 8)
        self._draw_text(_DATE_X, lower, f"{moved_at:%H:%M:%S}", REGULAR, 6.5, _MUTED_COLOR)
        self._draw_text(_DESCRIPTION_X, lower, details, REGULAR, 6.5, _MUTED_COLOR)

    def _draw_footer(self, page: int) -> None:
        canvas = self._canvas
        canvas.setStrokeColor(_LINE_COLOR)
        canvas.setLineWidth(0.6)
        canvas.line(_LEFT, _BOTTOM - 12, _RIGHT, _BOTTOM - 12)
        y = _BOTTOM - 25
        note = f"Times in {self._statement.zone.key}, amounts in {self._statement.currency}"
        self._draw_text(_LEFT, y, note, REGULAR, 7, _MUTED_COLOR)
        self._draw_text_right(
            _RIGHT, y, f"Page {page} of {self._page_count}", REGULAR, 7, _MUTED_COLOR
        )

    def _draw_text(
        self, x: float, y: float, text: str, font: str, size: float, color: Color = _TEXT_COLOR
    ) -> None:
        self._set_font(font, size, color)
        self._canvas.drawString(x, y, text)

    def _draw_text_right(
        self, x: float, y: float, text: str, font: str, size: float, color: Color = _TEXT_COLOR
    ) -> None:
        self._set_font(font, size, color)
        self._canvas.drawRightString(x, y, text)

    def _set_font(self, font: str, size: float, color: Color) -> None:
        self._canvas.setFont(font, size)
        if color is not self._fill_color:  # redundant changes would enlarge files of long tables
            self._fill_color = color
            self._canvas.setFillColor(color)

    def _set_fill_color(self, color: Color) -> None:
        self._fill_color = color
        self._canvas.setFillColor(color)

    def _format_amount(self, minor: int) -> str:
        """Format an amount as `1,234.50`."""
        sign, magnitude = ("-", -minor) if minor < 0 else ("", minor)
        whole, point, fraction = self._statement.format_amount(magnitude).partition(".")
        return f"{sign}{int(whole):,}{point}{fraction}"


def _format_day(moment: date) -> str:
    return f"{moment:%d %b %Y}"
