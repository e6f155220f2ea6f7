"""Report table as a PDF file, in the operator's branding.

Rendering is deterministic: the same report gives the same bytes.
"""

import io
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from reportlab import rl_config
from reportlab.lib.colors import Color, HexColor
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from tapgate.business.branding.model import Branding
from tapgate.business.finance.reports.documents import Document
from tapgate.business.payments.wallets.statements.typesetting import (
    BOLD,
    REGULAR,
    replace_missing_glyphs,
    truncate_to_width,
)

rl_config.useA85 = 0

_MARGIN: Final = 42.0
_BOTTOM: Final = 52.0
_HEADER_HEIGHT: Final = 96.0
_ROW_HEIGHT: Final = 16.0
_PADDING: Final = 6.0
_FONT_SIZE: Final = 8
_LOGO_WIDTH, _LOGO_HEIGHT = 130.0, 22.0
#: Wider tables are printed across.
_MAX_PORTRAIT_COLUMNS: Final = 6

_TEXT_COLOR: Final = HexColor("#161b24")
_MUTED_COLOR: Final = HexColor("#545c69")
_LINE_COLOR: Final = HexColor("#e2e6eb")
_WHITE: Final = HexColor("#ffffff")


def render(document: Document, branding: Branding) -> bytes:
    file = io.BytesIO()
    is_wide = len(document.columns) > _MAX_PORTRAIT_COLUMNS
    size = landscape(A4) if is_wide else A4
    canvas = Canvas(file, pagesize=size, pageCompression=1, invariant=1)
    _Renderer(canvas, size, document, branding).render()
    canvas.save()
    return file.getvalue()


class _Renderer:
    def __init__(
        self, canvas: Canvas, size: tuple[float, float], document: Document, branding: Branding
    ) -> None:
        self._canvas, self._document, self._branding = canvas, document, branding
        self._width, self._height = size
        self._right = self._width - _MARGIN
        self._accent_color = HexColor(branding.color)
        self._table_top = self._height - _MARGIN - _HEADER_HEIGHT
        self._rows_per_page = int((self._table_top - _BOTTOM) // _ROW_HEIGHT) - 1
        shares = [column.width for column in document.columns]
        unit = (self._right - _MARGIN) / sum(shares)
        self._widths = [share * unit for share in shares]
        self._lefts = [_MARGIN, *(_MARGIN + end for end in accumulate(self._widths))]

    def render(self) -> None:
        document, rows = self._document, self._document.rows
        self._canvas.setTitle(f"{document.title}, {document.period}")
        self._canvas.setCreator(replace_missing_glyphs(self._branding.name))
        bold = {position % len(rows) for position in document.bold_rows} if rows else set()
        pages = max(1, -(-len(rows) // self._rows_per_page))
        for page in range(pages):
            first = page * self._rows_per_page
            self._draw_header()
            self._draw_row(0, [column.title for column in document.columns], BOLD, _WHITE)
            for index, row in enumerate(rows[first : first + self._rows_per_page]):
                font = BOLD if first + index in bold else REGULAR
                self._draw_row(index + 1, row, font, _TEXT_COLOR)
            self._draw_footer(page + 1, pages)
            self._canvas.showPage()

    def _draw_header(self) -> None:
        canvas, top = self._canvas, self._height - _MARGIN
        canvas.setFillColor(self._accent_color)
        canvas.rect(0, self._height - 10, self._width, 10, stroke=0, fill=1)
        self._draw_text(_MARGIN, top - 26, self._document.title, BOLD, 19, self._accent_color)
        period = f"{self._document.period} · {self._document.currency}"
        self._draw_text(_MARGIN, top - 44, period, REGULAR, 10, _MUTED_COLOR)
        y = top - 20
        if self._branding.logo is not None:
            canvas.drawImage(
                ImageReader(io.BytesIO(self._branding.logo)),
                self._right - _LOGO_WIDTH,
                top - _LOGO_HEIGHT - 8,
                _LOGO_WIDTH,
                _LOGO_HEIGHT,
                mask="auto",
                preserveAspectRatio=True,
                anchor="e",
            )
            y -= 20
        name = truncate_to_width(self._branding.name, BOLD, 8, (self._right - _MARGIN) / 2)
        self._draw_text(self._right, y, name, BOLD, 8, _TEXT_COLOR, is_right=True)
        canvas.setFillColor(self._accent_color)
        canvas.rect(
            _MARGIN, self._table_top - _ROW_HEIGHT, self._right - _MARGIN, _ROW_HEIGHT, 0, fill=1
        )

    def _draw_row(self, position: int, cells: Sequence[str], font: str, color: Color) -> None:
        bottom = self._table_top - (position + 1) * _ROW_HEIGHT
        for index, (column, cell) in enumerate(zip(self._document.columns, cells, strict=True)):
            text = truncate_to_width(cell, font, _FONT_SIZE, self._widths[index] - 2 * _PADDING)
            x = (
                self._lefts[index + 1] - _PADDING
                if column.is_amount
                else (self._lefts[index] + _PADDING)
            )
            self._draw_text(x, bottom + 5, text, font, _FONT_SIZE, color, is_right=column.is_amount)
        self._canvas.setStrokeColor(_LINE_COLOR)
        self._canvas.setLineWidth(0.4)
        self._canvas.line(_MARGIN, bottom, self._right, bottom)

    def _draw_footer(self, page: int, pages: int) -> None:
        text = f"Page {page} of {pages}"
        y = _BOTTOM - 22
        self._draw_text(self._right, y, text, REGULAR, 7, _MUTED_COLOR, is_right=True)

    def _draw_text(
        self,
        x: float,
        y: float,
        text: str,
        font: str,
        size: float,
        color: Color,
        *,
        is_right: bool = False,
    ) -> None:
        self._canvas.setFont(font, size)
        self._canvas.setFillColor(color)
        draw = self._canvas.drawRightString if is_right else self._canvas.drawString
        draw(x, y, replace_missing_glyphs(text))
