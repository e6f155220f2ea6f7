"""Parsers for phone numbers and card serials."""

import re

import phonenumbers

from tapgate.messenger.understanding.reading.digit_normalization import normalize_digits

_FILLER_PATTERN = re.compile(
    r"^(?:(?:to|for|the|number|phone|no|tel|au|à|a|le|numero|numéro|card|carte|la|serial|série"
    r"|it|c'est|my|ma|mon|is|est)[ :.]+)+",
    re.IGNORECASE,
)
_PHONE_PATTERN = re.compile(r"\+?[0-9][0-9 ().-]{4,24}[0-9]")
_SERIAL_PATTERN = re.compile(r"[A-Za-z0-9-]{1,32}", re.ASCII)
_MIN_PHONE_DIGITS, _MAX_PHONE_DIGITS = 7, 15


def parse_phone(text: str, own_phone: str | None) -> str | None:
    """Return a phone number in E.164. A local number belongs to the country of `own_phone`."""
    displayed = _strip_fillers(text).rstrip(".!")
    if not _PHONE_PATTERN.fullmatch(displayed):
        return None
    if displayed.startswith("00"):
        displayed = "+" + displayed[2:]
    region = _get_region(own_phone)
    if region is None and not displayed.startswith("+"):
        return None
    try:
        number = phonenumbers.parse(displayed, region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number):
        return _parse_without_plus(displayed)
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def parse_card_serial(text: str) -> str | None:
    """Return a card serial as written.

    A serial contains a digit. A phone number or a short number is not a serial.
    """
    displayed = _strip_fillers(text).rstrip(".!")
    if not _SERIAL_PATTERN.fullmatch(displayed) or not any(sign.isdigit() for sign in displayed):
        return None
    if any(sign.isalpha() for sign in displayed):
        return displayed if displayed[0] != "-" and displayed[-1] != "-" else None
    # Only digits: a serial only if it is too long for a phone number.
    return displayed if displayed.isdigit() and len(displayed) > _MAX_PHONE_DIGITS else None


def _parse_without_plus(displayed: str) -> str | None:
    """Parse an international number without its plus sign, such as `23276123456`."""
    if displayed.startswith(("+", "0")):
        return None
    try:
        number = phonenumbers.parse("+" + displayed)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_valid_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _strip_fillers(text: str) -> str:
    return _FILLER_PATTERN.sub("", normalize_digits(text)).strip()


def _get_region(own_phone: str | None) -> str | None:
    if own_phone is None:
        return None
    try:
        region = phonenumbers.region_code_for_number(phonenumbers.parse(own_phone))
    except phonenumbers.NumberParseException:
        return None
    return str(region) if region else None
