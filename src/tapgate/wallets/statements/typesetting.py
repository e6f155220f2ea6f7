"""Text on a PDF page: two fonts that know West Africa's letters, and text that fits."""

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
    """What can be drawn; loads the fonts."""
    for name, file in _FONT_FILES.items():
        pdfmetrics.registerFont(TTFont(name, _FONT_DIR / file))
    known = pdfmetrics.getFont(REGULAR).face.charToGlyph
    return frozenset(map(chr, known))


def replace_missing_glyphs(text: str) -> str:
    """The text in letters that the fonts have: without an accent, or as `?`, where they have not.
    Never more than one line."""
    letters = _load_glyphs()
    if letters.issuperset(text):
        return text
    return "".join(letter if letter in letters else _replace_glyph(letter) for letter in text)


def _replace_glyph(letter: str) -> str:
    if letter.isspace() or unicodedata.category(letter) == "Cc":
        return " "
    if unicodedata.category(letter) in ("Cf", "Mn"):
        return ""  # marks, joiners and changes of direction mean nothing without their letters
    simpler = "".join(
        part for part in unicodedata.normalize("NFKD", letter) if part in _load_glyphs()
    )
    return simpler or _REPLACEMENT


def truncate_to_width(text: str, font: str, size: float, width: float) -> str:
    """As much of the text as there is room for."""
    text = replace_missing_glyphs(text)
    if pdfmetrics.stringWidth(text, font, size) <= width:
        return text
    room = width - pdfmetrics.stringWidth(_ELLIPSIS, font, size)
    kept = ""
    for letter in text:
        room -= pdfmetrics.stringWidth(letter, font, size)
        if room < 0:
            break
        kept += letter
    return kept.rstrip() + _ELLIPSIS
