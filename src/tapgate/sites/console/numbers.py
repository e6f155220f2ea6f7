"""Numbers as people read and type them in their language: `12,345.60`, or `12 345,60` in French."""

import re
from typing import Final, NamedTuple

_SPACES: Final = re.compile(r"[\s\u00a0\u202f']")
#: Thousands apart and a comma before at most two decimals, which can only be one number.
_FRENCH: Final = re.compile(r"\d[\s\u00a0\u202f']\d{3},\d{1,2}$")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
#: Amount with decimals or a currency: a number alone may be a name or a reference.
_AMOUNT: Final = re.compile(r"(-?\d[\d,]*(?:\.\d+)?) ([A-Z]{3})|(-?\d[\d,]*\.\d+)")


class NumberFormat(NamedTuple):
    """How a language writes numbers. `gap` is before a percent sign and a currency."""

    group: str
    point: str
    gap: str
    currency_gap: str

    def format_number(self, value: int | float | None) -> str:
        return "–" if value is None else self._localize(f"{value:,}")

    def format_amount(self, amount: str | None, currency: str = "") -> str:
        """Format an amount: `12345.60` -> `12,345.60 SLE`. The minus sign is as wide as a digit."""
        if amount is None:
            return "–"
        sign = "−" if amount.startswith("-") else ""
        whole, point, fraction = amount.removeprefix("-").partition(".")
        grouped = f"{int(whole):,}" if whole.isascii() and whole.isdigit() else whole
        number = self._localize(f"{grouped}{point}{fraction}")
        return f"{sign}{number}{self.currency_gap if currency else ''}{currency}"

    def format_percent(self, value: object, decimals: int | None = None) -> str:
        """Format a percentage: `2.5` -> `2.5%`."""
        text = str(value) if decimals is None else f"{value:.{decimals}f}"
        return f"{self._localize(text)}{self.gap}%"

    def format_input(self, value: object) -> str:
        """Return a decimal of the API as a form shows it, without separators of thousands."""
        text = str(value)
        return text.replace(".", self.point) if _NUMBER.fullmatch(text) else text

    def localize_amount(self, text: str) -> str:
        """Return an amount within a message of the API in this format; other texts unchanged."""
        match = _AMOUNT.fullmatch(text)
        if match is None:
            return text
        return self.format_amount((match[1] or match[3]).replace(",", ""), match[2] or "")

    def clean(self, text: str | None) -> str | None:
        """Return a number that someone typed in the form that the API accepts.

        `1,234.50`, `1.234,50` and `1 234,50` become `1234.50` in every language, because the first
        separator can only be that of thousands. With a single separator, the language decides:
        `1,50` is a number in French, and in English probably a slip of `1,500`. It is kept, and the
        API rejects it.
        """
        if text is None:
            return None
        compact = _SPACES.sub("", text)
        for group, point in self._list_readings(compact, is_french=bool(_FRENCH.search(text))):
            pattern = (
                rf"-?(?:\d+|\d{{1,3}}(?:{re.escape(group)}\d{{3}})+)(?:{re.escape(point)}\d*)?"
            )
            if re.fullmatch(pattern, compact):
                return compact.replace(group, "").replace(point, ".")
        return compact

    def _list_readings(self, text: str, *, is_french: bool) -> list[tuple[str, str]]:
        """Return the separators of thousands and decimals to try, in order."""
        if "," in text and "." in text:
            return [(".", ","), (",", ".")]
        if self.point == ".":
            return [("", ",")] if is_french else [(",", ".")]
        # With one kind of separator, it is the decimal one: 1.500 would else become 1500.
        return [("", ","), ("", ".")]

    def _localize(self, text: str) -> str:
        return text.translate({ord(","): self.group, ord("."): self.point})


_FORMATS: Final = {
    "en": NumberFormat(group=",", point=".", gap="", currency_gap=" "),
    "fr": NumberFormat(
        group="\N{NARROW NO-BREAK SPACE}",
        point=",",
        gap="\N{NO-BREAK SPACE}",
        currency_gap="\N{NO-BREAK SPACE}",
    ),
}


def get_number_format(language: str) -> NumberFormat:
    return _FORMATS[language]
