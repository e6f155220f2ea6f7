"""A transfer said in one sentence: how much, and to whom."""

import re
from itertools import pairwise

import msgspec

from tapgate.messenger.understanding.reading.amounts import (
    amount,
    currency_names,
    names_another,
)
from tapgate.messenger.understanding.reading.digits import tidy
from tapgate.messenger.understanding.reading.whom import card_serial, phone

_TO = re.compile(r"(?<=\s)(?:to|for|au|à|a|vers|sur|pour|na)\s+", re.IGNORECASE)
_ARTICLES = re.compile(
    r"^(?:(?:the|my|la|le|ma|mon|number|card|carte|numéro|numero|phone|serial|no\.?|n°)[ :]+)+",
    re.IGNORECASE,
)
#: Another figure in the same part would make it a guess.
_FIGURES = re.compile(r"[0-9](?:[0-9 .,']*[0-9])?")
_NEGATIVE = re.compile(r"(?:^|\s)[-−]\s?[0-9]")
#: Whom money is for, in one word that cannot be an amount.
_PLAIN_PAYEE = re.compile(
    r"(?<!\S)(?:(?:\+|0)[0-9]{7,14}|(?=\S*[0-9])[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+)(?![^\s,;.!])",
    re.ASCII,
)
_NAME = re.compile(r"[^\W\d_][^\W\d_'.-]*(?: [^\W\d_][^\W\d_'.-]*){0,2}")
_POSSESSIVES = re.compile(r"^(?:(?:my|mi|the|mon|ma|le|la)\s+)+", re.IGNORECASE)
#: Said of anybody.
_NOBODY = frozenset(
    """someone somebody anyone a an another other friend person people card account wallet number
    phone me myself you him her them it us this that today tomorrow now please quelqu'un une un
    autre ami amie personne carte compte moi lui elle eux""".split()
)


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
    """`"send 500 to 076 123 456"`, `"envoie 2000 à la carte CARD-123"`"""
    what, *whom = _TO.split(tidy(text))
    payees = [payee for part in whom if (payee := _payee(part, own_phone)) is not None]
    if not payees:
        return _without_to(what, whom, own_phone, currency)
    payee = payees[0] if len(payees) == 1 else Payee()
    said = what
    if len(whom) == 1 and not _FIGURES.search(what):
        # "Send to CARD-1 500": the amount may come last.
        said = _PLAIN_PAYEE.sub(" ; ", whom[0], count=1)
    return Order(amount=_sum(said, currency), phone=payee.phone, card_serial=payee.card_serial)


def _without_to(what: str, whom: list[str], own_phone: str | None, currency: str) -> Order:
    """`"send CARD-1 500"`: whom and how much, in either order, each as one plain word."""
    found = list(_PLAIN_PAYEE.finditer(what))
    payee = recipient(found[0][0], own_phone) if len(found) == 1 and not whom else None
    if payee is None:
        return Order(amount=_sum(what, currency))
    rest = _PLAIN_PAYEE.sub(" ; ", what)
    return Order(amount=_sum(rest, currency), phone=payee.phone, card_serial=payee.card_serial)


def payee_name(text: str) -> str | None:
    """`"send 8 to Mohamed"` -> `"Mohamed"`: somebody who is named rather than numbered."""
    _, *whom = _TO.split(tidy(text).rstrip(" .!?"))
    if len(whom) != 1:
        return None
    name = _POSSESSIVES.sub("", whom[0]).strip()
    if not _NAME.fullmatch(name) or not _NOBODY.isdisjoint(name.lower().split()):
        return None
    return name


def has_odd_amount(text: str, currency: str) -> bool:
    """Whether there is an amount in words, in short or in another currency: "1k", "$5"."""
    said = tidy(text).lower()
    around = re.findall(r"[$€£]\s?[0-9]|[0-9]\s?[$€£]|[0-9](?:[0-9.,]*[0-9])?\s?(?:k|m)\b", said)
    words = said.split()
    beside = [word for word, number in pairwise(words) if number[0].isdigit()]
    beside += [word for number, word in pairwise(words) if number[-1].isdigit()]
    return bool(around) or any(names_another(word, currency) for word in beside)


def _payee(part: str, own_phone: str | None) -> Payee | None:
    """At the beginning of what comes after "to": a number, or a card's serial."""
    rest = _ARTICLES.sub("", part).strip()
    whole = recipient(rest, own_phone)
    if whole is not None:
        return whole
    first = _PLAIN_PAYEE.match(rest)
    if first is not None and (alone := recipient(first[0], own_phone)) is not None:
        return alone
    number = re.match(r"\+?[0-9][0-9 ().-]{5,24}[0-9](?=\s+[A-Za-z]|$)", rest)
    if number is not None:
        found = phone(number[0], own_phone)
        return None if found is None else Payee(phone=found)
    serial = card_serial(rest.split(" ", 1)[0].rstrip(",;."))
    return None if serial is None else Payee(card_serial=serial)


def _sum(part: str, currency: str) -> str | None:
    """The only figure of a part, with its currency."""
    figures = list(_FIGURES.finditer(part))
    if _NEGATIVE.search(part) or len(figures) != 1:
        return None
    before, after = part[: figures[0].start()].lower(), part[figures[0].end() :].lower()
    around = [*before.split()[-1:], *after.split()[:1]]
    if any(names_another(word, currency) for word in around):
        return None
    names = currency_names(currency)
    glued = re.search(r"[^\W_]+$", before), re.match(r"[^\W_]+", after)
    if any(match is not None and match[0] not in names for match in glued):
        return None
    if after[:1] in {"%", "-", "/"} or before[-1:] in {"-", "/", "$", "€", "£"}:
        return None
    return amount(figures[0][0], currency)
