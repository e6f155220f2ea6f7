"""Amounts of money as people write them, English and French.

`1.500` and `1,500` are one thousand five hundred in one language and one and a half in the other:
where a currency has three decimals that is a doubt, elsewhere three digits are thousands.
"""

import re

from tapgate import money
from tapgate.messenger.understanding.reading.digits import tidy

#: Names of currencies that are not their codes, in small letters.
_NAMES = {
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
_ASIDE = re.compile(
    r"^(?:(?:amount|montant|the|le montant|about|send|envoie|envoyer|pay|it is|it's|its|c'est)[: ]+)+"
    r"|(?: only| please| pls| plz| svp| stp)+$|[.!]+$"
)
_THOUSANDS = re.compile(r"[0-9]{1,3}(?P<sign>[ ,.'])[0-9]{3}(?:(?P=sign)[0-9]{3})*")
_PLAIN = re.compile(r"[0-9]+")
_DECIMALS = re.compile(r"(.*[0-9])([.,])([0-9]{1,4})")


def amount(text: str, currency: str) -> str | None:
    """`"Le 1,500.50"` -> `"1500.50"`, as `money.parse` takes it. None: no amount, or in doubt."""
    rest = _without_currency(_without_asides(tidy(text).lower()), currency)
    figure = None if rest is None else _figure(rest, currency)
    if figure is None:
        return None
    try:
        money.parse(figure, currency)
    except money.AmountError:
        return None
    return figure


def _without_asides(text: str) -> str:
    previous = ""
    while previous != text:
        previous, text = text, _ASIDE.sub("", text).strip()
    return text


def currency_names(currency: str) -> tuple[str, ...]:
    names = {currency.lower(), *_NAMES.get(currency, ())}
    return tuple(sorted(names, key=len, reverse=True))


def _without_currency(text: str, currency: str) -> str | None:
    """None for an amount of another currency."""
    for name in currency_names(currency):
        if text.startswith(name) and text[len(name) :].lstrip(" .:")[:1].isdigit():
            return text[len(name) :].lstrip(" .:")
        if text.endswith(name) and text[: -len(name)].rstrip()[-1:].isdigit():
            return text[: -len(name)].rstrip()
    return text if text[:1].isdigit() else None


def _figure(text: str, currency: str) -> str | None:
    if _PLAIN.fullmatch(text):
        return text
    grouped = _THOUSANDS.fullmatch(text)
    if grouped:
        sign = grouped["sign"]
        # "1,500" of a currency with three decimals may be one and a half.
        doubtful = money.decimals(currency) >= 3 and sign in ",." and text.count(sign) == 1
        return None if doubtful or text.startswith("0") else text.replace(sign, "")
    return _with_decimals(text, currency)


def _with_decimals(text: str, currency: str) -> str | None:
    match = _DECIMALS.fullmatch(text)
    if match is None or len(match[3]) > money.decimals(currency):
        return None
    whole, sign, decimals = match.groups()
    if _PLAIN.fullmatch(whole):
        return f"{whole}.{decimals}"
    grouped = _THOUSANDS.fullmatch(whole)
    if grouped is None or grouped["sign"] == sign or whole.startswith("0"):
        return None
    return f"{whole.replace(grouped['sign'], '')}.{decimals}"
