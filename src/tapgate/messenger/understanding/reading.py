"""What is read out of free text: amounts, phones, card serials, names, periods."""

import re
from datetime import date, timedelta

import msgspec
import phonenumbers

from tapgate import money

_NUMBER = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    amount: str | None = None
    phone: str | None = None
    card_serial: str | None = None


def amount(text: str, currency: str) -> str | None:
    found = _NUMBER.search(text)
    if found is None:
        return None
    try:
        return money.plain(money.parse(found[0].replace(",", ""), currency), currency)
    except money.AmountError:
        return None


def phone(text: str, own_phone: str | None) -> str | None:
    region = None
    if own_phone is not None:
        region = phonenumbers.region_code_for_number(phonenumbers.parse(own_phone))
    try:
        number = phonenumbers.parse(text, region or "SL")
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_valid_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def card_serial(text: str) -> str | None:
    serial = text.strip().upper()
    if re.fullmatch(r"[A-Z0-9-]{5,32}", serial) and re.search(r"[0-9]", serial):
        return serial
    return None


def order(text: str, own_phone: str | None, currency: str) -> Order:
    found_amount, found_phone, found_serial = None, None, None
    for word in text.split():
        if found_phone is None and len(word) >= 8 and (found := phone(word, own_phone)):
            found_phone = found
        elif re.search("[A-Za-z]", word) and (serial := card_serial(word)):
            found_serial = serial
        elif found_amount is None and _NUMBER.fullmatch(word):
            found_amount = amount(word, currency)
    return Order(amount=found_amount, phone=found_phone, card_serial=found_serial)


def person_names(text: str) -> tuple[str, str] | None:
    words = text.split()
    if len(words) < 2 or not all(re.fullmatch(r"[^\W\d_]+(?:[-'][^\W\d_]+)*", w) for w in words):
        return None
    return words[0], " ".join(words[1:])


def number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,3}", text.strip()) else None


def period(text: str, today: date) -> tuple[date, date] | None:
    found = re.fullmatch(r"last ([0-9]{1,3}) days", text.strip().casefold())
    if found is None:
        return None
    return today - timedelta(days=int(found[1])), today
