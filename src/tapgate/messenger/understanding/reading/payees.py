"""Parsers for phone numbers and card serials."""

import re

import phonenumbers

from tapgate.messenger.understanding.normalization import normalize_digits

_FILLER_PATTERN = re.compile(
    r"^(?:(?:to|for|the|number|phone|no|tel|au|à|a|le|numero|numéro|card|carte|la|serial|série"
    r"|it|c'est|my|ma|mon|is|est)[ :.]+)+",
    re.IGNORECASE,
)
_PHONE_PATTERN = re.compile(r"\+?[0-9][0-9 ().-]{4,24}[0-9]")
_SERIAL_PATTERN = re.compile(r"[A-Za-z0-9-]{1,32}", re.ASCII)
_MIN_PHONE_DIGITS, _MAX_PHONE_DIGITS = 7, 15


def parse_phone(text: str, own_phone: str | None) -> str | None:
    """Return the phone number in E.164 format, or None if the text is not a phone number.

    A local number belongs to the country of `own_phone`, and is not accepted without it.
    """
    cleaned = _strip_fillers(text).rstrip(".!")
    if not _PHONE_PATTERN.fullmatch(cleaned):
        return None
    if cleaned.startswith("00"):
        cleaned = "+" + cleaned[2:]
    region = _get_region(own_phone)
    if region is None and not cleaned.startswith("+"):
        return None
    try:
        number = phonenumbers.parse(cleaned, region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number):
        return _parse_without_plus(cleaned)
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def parse_card_serial(text: str) -> str | None:
    """Return the card serial as written, or None if the text is not a serial.

    A serial contains a digit. Digits without a letter are a serial only if there are too many for a
    phone number.
    """
    cleaned = _strip_fillers(text).rstrip(".!")
    if not _SERIAL_PATTERN.fullmatch(cleaned) or not any(char.isdigit() for char in cleaned):
        return None
    if any(char.isalpha() for char in cleaned):
        return cleaned if cleaned[0] != "-" and cleaned[-1] != "-" else None
    # Without letters, only a number that is too long for a phone number is a serial.
    return cleaned if cleaned.isdigit() and len(cleaned) > _MAX_PHONE_DIGITS else None


def _parse_without_plus(cleaned: str) -> str | None:
    """Parse an international number without its plus sign, such as `23276123456`."""
    if cleaned.startswith(("+", "0")):
        return None
    try:
        number = phonenumbers.parse("+" + cleaned)
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
