"""Text layout for PDF pages: fonts with the letters of West African languages, and truncation."""

import unicodedata
from functools import cache
from pathlib import Path
from typing import Final

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

REGULAR: Final = "Tapgate"
BOLD: Final = "Tapgate-Bold"

_FONT_DIR: Final = Path(__file__).parent / "fonts"
_FONT_FILES: Final = {REGULAR: "DejaVuSans-Latin.ttf", BOLD: "DejaVuSans-Bold-Latin.ttf"}
_REPLACEMENT: Final = "?"
_ELLIPSIS: Final = "…"


@cache
def _load_glyphs() -> frozenset[str]:
    """Register the fonts and return the characters that the regular font contains."""
    for name, file in _FONT_FILES.items():
        pdfmetrics.registerFont(TTFont(name, _FONT_DIR / file))
    glyphs = pdfmetrics.getFont(REGULAR).face.charToGlyph
    return frozenset(map(chr, glyphs))


def replace_missing_glyphs(text: str) -> str:
    """Replace characters that the fonts lack with a simpler form, a space or `?`, or remove them.

    Line breaks become spaces, so the result is a single line.
    """
    letters = _load_glyphs()
    if letters.issuperset(text):
        return text
    return "".join(letter if letter in letters else _replace_glyph(letter) for letter in text)


def _replace_glyph(letter: str) -> str:
    if letter.isspace() or unicodedata.category(letter) == "Cc":
        return " "
    if unicodedata.category(letter) in ("Cf", "Mn"):
        return ""  # combining marks, joiners and direction controls have no glyph of their own
    simpler = "".join(
        part for part in unicodedata.normalize("NFKD", letter) if part in _load_glyphs()
    )
    return simpler or _REPLACEMENT


def truncate_to_width(text: str, font: str, size: float, width: float) -> str:
    """Replace missing glyphs, then shorten the text with an ellipsis if it is too wide."""
    text = replace_missing_glyphs(text)
    if pdfmetrics.stringWidth(text, font, size) <= width:
        return text
    remaining = width - pdfmetrics.stringWidth(_ELLIPSIS, font, size)
    truncated = ""
    for letter in text:
        remaining -= pdfmetrics.stringWidth(letter, font, size)
        if remaining < 0:
            break
        truncated += letter
    return truncated.rstrip() + _ELLIPSIS
