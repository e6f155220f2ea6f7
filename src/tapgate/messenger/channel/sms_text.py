"""Texts of SMS: a template's text in at most three parts.

A part has 153 characters of the GSM 7-bit alphabet, or 67 UTF-16 units if the text has any other
character. Accented letters and signs that the alphabet lacks are replaced by similar ones. A text
that is too long has its names shortened, and never a number: amounts, IDs and codes stay whole.
"""

import unicodedata
from collections.abc import Sequence
from typing import Final

from tapgate.core.message_templates import MessageTemplate, TemplatePurpose

MAX_PARTS: Final = 3
GSM_PART_LENGTH: Final = 153
UCS2_PART_LENGTH: Final = 67
#: A text in one part needs no header that connects the parts.
_SINGLE_GSM_LENGTH: Final = 160
_SINGLE_UCS2_LENGTH: Final = 70

_GSM_CHARACTERS: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
#: These take two characters: an escape and a character of the extension table.
_GSM_EXTENSION: Final = frozenset("^{}\\[~]|€")
_SIMILAR: Final = str.maketrans(
    {
        "\u2022": "*",  # bullets mask digits
        "\u00a0": " ",
        "\u202f": " ",
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "«": '"',
        "»": '"',
        "\u2013": "-",
        "\u2014": "-",
        "\u2212": "-",
        "\u2026": "...",
        "œ": "oe",
        "Œ": "OE",
    }
)
_CUT_MARK: Final = "..."
_MIN_NAME_LENGTH: Final = 8


class SmsTextError(ValueError):
    """The message cannot be sent as SMS: parameters are missing, or a code is too long."""


def render_sms(template: MessageTemplate, language: str, parameters: Sequence[str]) -> str:
    """Return the template's text in at most three parts."""
    if len(parameters) < template.parameter_count:
        raise SmsTextError("parameters are missing")
    # Asterisks are the chat's mark for bold text.
    form = template.get_text(language).replace("*", "")
    text = _simplify(form.format(*parameters))
    if not _is_gsm(text):
        # Only a name in another script needs UCS-2. If that is too long, the name loses its script.
        original = form.format(*parameters)
        if _fits(original):
            return original
    form, values = _simplify(form), [_replace_unknown(_simplify(value)) for value in parameters]
    fitting = _shorten_names(form, values)
    if fitting is not None:
        return fitting
    if template.purpose is TemplatePurpose.CODE:
        raise SmsTextError("the code is too long")
    return _cut(form.format(*values))


def count_parts(text: str) -> int:
    """Return the number of SMS parts. No part ends within a character of two units."""
    if _is_gsm(text):
        widths = [2 if char in _GSM_EXTENSION else 1 for char in text]
        single_length, part_length = _SINGLE_GSM_LENGTH, GSM_PART_LENGTH
    else:
        widths = [2 if ord(char) > 0xFFFF else 1 for char in text]
        single_length, part_length = _SINGLE_UCS2_LENGTH, UCS2_PART_LENGTH
    if sum(widths) <= single_length:
        return 1
    parts, used = 1, 0
    for width in widths:
        if used + width > part_length:
            parts, used = parts + 1, 0
        used += width
    return parts


def _fits(text: str) -> bool:
    return count_parts(text) <= MAX_PARTS


def _is_gsm(text: str) -> bool:
    return all(char in _GSM_CHARACTERS or char in _GSM_EXTENSION for char in text)


def _simplify(text: str) -> str:
    """Replace characters that the GSM alphabet lacks by similar ones, where there are any."""
    return "".join(
        char if _is_gsm(char) else _remove_accents(char) for char in text.translate(_SIMILAR)
    )


def _remove_accents(char: str) -> str:
    base = unicodedata.normalize("NFKD", char)[:1]
    return base if _is_gsm(base) else char


def _replace_unknown(text: str) -> str:
    return "".join(char if _is_gsm(char) else "?" for char in text)


def _shorten_names(form: str, values: Sequence[str]) -> str | None:
    """Return the text with its parameters as long as they fit, or None if they do not."""

    def format_with(limit: int) -> str:
        return form.format(*(_shorten(value, limit) for value in values))

    too_long = max(map(len, values), default=0)
    if _fits(format_with(too_long)):
        return format_with(too_long)
    limit = _MIN_NAME_LENGTH
    if not _fits(format_with(limit)):
        return None
    while too_long - limit > 1:
        middle = (limit + too_long) // 2
        if _fits(format_with(middle)):
            limit = middle
        else:
            too_long = middle
    return format_with(limit)


def _shorten(value: str, limit: int) -> str:
    """Shorten a name. A parameter with digits may be an amount, an ID or a code."""
    if len(value) <= limit or any(char.isdigit() for char in value):
        return value
    return value[: limit - len(_CUT_MARK)].rstrip() + _CUT_MARK


def _cut(text: str) -> str:
    """Return the beginning of a GSM text in three parts, without a word that is cut."""
    while not _fits(text + _CUT_MARK):
        shorter = text[: GSM_PART_LENGTH * MAX_PARTS].rpartition(" ")[0]
        text = shorter if shorter and shorter != text else text[: len(text) * 3 // 4]
    return text.rstrip() + _CUT_MARK
