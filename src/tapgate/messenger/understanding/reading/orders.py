"""A transfer said in one sentence: how much, and to whom."""

import re

import msgspec

from tapgate.messenger.understanding.reading.amounts import amount, currency_names
from tapgate.messenger.understanding.reading.digits import tidy
from tapgate.messenger.understanding.reading.whom import card_serial, phone

_TO = re.compile(r"(?:^|(?<=\s))(?:to|for|give|au|à|a|vers|sur|pour|na)\s+", re.IGNORECASE)
_ARTICLES = re.compile(
    r"^(?:(?:the|my|la|le|ma|mon|number|card|carte|numéro|numero|phone|serial|no\.?|n°)[ :]+)+",
    re.IGNORECASE,
)
#: Another figure in the same part would make it a guess.
_FIGURES = re.compile(r"[0-9](?:[0-9 .,']*[0-9])?")
_NEGATIVE = re.compile(r"(?:^|\s)[-−]\s?[0-9]")
_WORD_BEFORE_A_FIGURE = re.compile(r"[^0-9]*")


class Payee(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two."""

    phone: str | None = None
    card_serial: str | None = None


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What was not said, or not plainly, is None."""

    amount: str | None = None
    phone: str | None = None
    card_serial: str | None = None


def recipient(text: str, own_phone: str | None) -> Payee | None:
    number = phone(text, own_phone)
    if number is not None:
        return Payee(phone=number)
    serial = card_serial(text)
    return None if serial is None else Payee(card_serial=serial)


def order(text: str, own_phone: str | None, currency: str) -> Order:
    """`"send 500 to 076 123 456"`, `"envoie 2000 à la carte CARD-123"`, `"pay 076123456 500 le"`."""
    said = tidy(text)
    parts = _TO.split(said)
    to = [payee for part in parts[1:] if (payee := _payee(part, own_phone)) is not None]
    payee = to[0] if len(to) == 1 else None
    if len(to) > 1:
        return Order()
    sums = [
        figure
        for part in parts
        if _payee(part, own_phone) is None and (figure := _sum(part, currency)) is not None
    ]
    return Order(
        amount=sums[0] if len(sums) == 1 else None,
        phone=payee.phone if payee else None,
        card_serial=payee.card_serial if payee else None,
    )


def _payee(part: str, own_phone: str | None) -> Payee | None:
    """At the beginning of what comes after "to": a number, or a card's serial."""
    rest = _ARTICLES.sub("", part).strip()
    whole = recipient(rest, own_phone)
    if whole is not None:
        return whole
    number = re.match(r"\+?[0-9][0-9 ().-]{5,24}[0-9](?=\s+[A-Za-z]|$)", rest)
    if number is not None:
        found = phone(number[0], own_phone)
        return None if found is None else Payee(phone=found)
    serial = card_serial(rest.split(" ", 1)[0].rstrip(",;."))
    return None if serial is None else Payee(card_serial=serial)


def _sum(part: str, currency: str) -> str | None:
    """The only figure of a part, with its currency."""
    if _NEGATIVE.search(part) or len(_FIGURES.findall(part)) != 1:
        return None
    match = _FIGURES.search(part)
    assert match is not None  # just counted
    before, after = part[: match.start()].lower(), part[match.end() :].lower().split()
    glued = before[-1:].isalpha() and not before.endswith(currency_names(currency))
    if glued or (part[match.end() :][:1].isalnum() and after[0] not in currency_names(currency)):
        return None
    if part[match.end() :][:1] in {"%", "-"}:
        return None
    return amount(match[0], currency)
