"""Parser for amounts of money as written in English, French and Krio.

`1,500` is one thousand five hundred, but is ambiguous in a currency with three decimals. `1.500` is
ambiguous in every currency with decimals. Ambiguous text is not an amount.
"""

import re

from tapgate.messenger.understanding.number_words import AMBIGUOUS_NUMBER, write_digits
from tapgate_client import money

#: Currency names in lower case. The currency code in lower case is also accepted.
_CURRENCY_NAMES = {
    "SLE": ("le", "leone", "leones", "nle", "sle"),
    "XOF": ("f", "fr", "franc", "francs", "cfa", "fcfa", "f cfa", "francs cfa"),
    "XAF": ("f", "fr", "franc", "francs", "cfa", "fcfa", "f cfa", "francs cfa"),
    "GNF": ("fg", "f", "fr", "franc", "francs", "francs guinéens", "gnf"),
    "GMD": ("d", "dalasi", "dalasis"),
    "GHS": ("ghc", "cedi", "cedis", "gh₵", "₵"),
    "NGN": ("n", "naira", "₦"),
    "LRD": ("ld", "l$"),
    "USD": ("$", "dollar", "dollars"),
    "EUR": ("€", "euro", "euros"),
}
_MULTIPLIER_WORDS = frozenset(
    "k m hundred thousand million millions cent cents mille milles".split()
)
_FILLER_PATTERN = re.compile(
    r"^(?:(?:amount|montant|the|le montant|send|envoie|envoyer|pay|it is|it's|its|c'est)[: ]+)+"
    r"|(?: only| please| pls| plz| svp| stp)+$|[.!]+$"
)
_THOUSANDS_PATTERN = re.compile(
    r"[0-9]{1,3}(?P<separator>[ ,.'])[0-9]{3}(?:(?P=separator)[0-9]{3})*"
)
_DIGITS_PATTERN = re.compile(r"[0-9]+")
#: Minimum number of currency decimals at which a single separator may be a decimal mark.
_AMBIGUOUS_FROM_DECIMALS = {",": 3, ".": 1}
#: A longer number without a currency or separator may be a phone number.
_MAX_BARE_DIGITS = 7
#: A number in a sentence, but not a part of a card serial or of an international phone number.
_NUMBER_PATTERN = re.compile(r"(?<![\w.,+-])[0-9](?:[0-9 .,']*[0-9])?(?![\w-])\s*(\S*)")
_DECIMALS_PATTERN = re.compile(r"(.*[0-9])([.,])([0-9]{1,4})")


def parse_amount(text: str, currency: str) -> str | None:
    """Parse an amount into the format of `money.parse`: `"Le 1,500.50"` becomes `"1500.50"`.

    Words are read too: `"two hundred"` becomes `"200"`.

    Return None if the text is not an amount or is ambiguous.
    """
    message = _strip_fillers(write_digits(text, is_answer=True).lower())
    rest = _strip_currency(message, currency)
    if _DIGITS_PATTERN.fullmatch(rest) and len(rest) > _MAX_BARE_DIGITS and rest == message:
        return None
    number = _parse_number(rest, currency)
    if number is None:
        return None
    try:
        money.parse(number, currency)
    except money.AmountError:
        return None
    return number


def parse_amount_in_question(text: str, currency: str) -> str | None:
    """Return the only amount in a question, such as `"500"` in `"What does it cost to send 500?"`.

    Return None if there is no amount, more than one, or an amount in another unit.
    """
    plain = write_digits(text)
    matches = list(_NUMBER_PATTERN.finditer(plain))
    if AMBIGUOUS_NUMBER in plain or any(is_other_unit(match[1], currency) for match in matches):
        return None
    numbers = [match[0][: match.start(1) - match.start()].strip() for match in matches]
    amounts = [amount for number in numbers if (amount := parse_amount(number, currency))]
    return amounts[0] if len(amounts) == 1 else None


def _strip_fillers(text: str) -> str:
    previous = ""
    while previous != text:
        previous, text = text, _FILLER_PATTERN.sub("", text).strip()
    return text


def list_currency_names(currency: str) -> tuple[str, ...]:
    names = {currency.lower(), *_CURRENCY_NAMES.get(currency, ())}
    return tuple(sorted(names, key=len, reverse=True))


def is_other_unit(word: str, currency: str) -> bool:
    """Return whether the word is a multiplier or another currency, not a name for this one."""
    word = word.lower().strip(".,;:!")
    others = {name for code, names in _CURRENCY_NAMES.items() for name in (code.lower(), *names)}
    known = word in others | _MULTIPLIER_WORDS or money.is_currency(word.upper())
    return known and word not in list_currency_names(currency)


def _strip_currency(text: str, currency: str) -> str:
    for name in list_currency_names(currency):
        after = text[len(name) :].lstrip(" .:")
        if text.startswith(name) and after[:1].isdigit():
            text = after
        before = text[: -len(name)].rstrip()
        if text.endswith(name) and before[-1:].isdigit():
            text = before
    return text


def _parse_number(text: str, currency: str) -> str | None:
    if _DIGITS_PATTERN.fullmatch(text):
        # A leading zero, as in "0500", suggests a phone number.
        return None if text.startswith("0") else text
    grouped = _THOUSANDS_PATTERN.fullmatch(text)
    if grouped:
        separator = grouped["separator"]
        is_ambiguous = text.count(separator) == 1 and money.get_decimals(
            currency
        ) >= _AMBIGUOUS_FROM_DECIMALS.get(separator, 9)
        return None if is_ambiguous or text.startswith("0") else text.replace(separator, "")
    return _parse_decimal(text, currency)


def _parse_decimal(text: str, currency: str) -> str | None:
    match = _DECIMALS_PATTERN.fullmatch(text)
    if match is None or len(match[3]) > money.get_decimals(currency):
        return None
    whole, separator, decimals = match.groups()
    if whole == "0" or (_DIGITS_PATTERN.fullmatch(whole) and not whole.startswith("0")):
        return f"{whole}.{decimals}"
    grouped = _THOUSANDS_PATTERN.fullmatch(whole)
    if grouped is None or grouped["separator"] == separator or whole.startswith("0"):
        return None
    return f"{whole.replace(grouped['separator'], '')}.{decimals}"
