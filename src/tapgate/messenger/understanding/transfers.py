"""Parsers for payees (phone numbers and card serials) and for transfer requests in one sentence.

For a missing or ambiguous value, a parser returns None, or a struct in which the field is None.
"""

import re
from itertools import pairwise

import msgspec
import phonenumbers

from tapgate.core.phone_numbers import normalize_phone_number
from tapgate.messenger.understanding.amounts import is_other_unit, list_currency_names, parse_amount
from tapgate.messenger.understanding.normalization import normalize_digits
from tapgate.messenger.understanding.number_words import AMBIGUOUS_NUMBER, write_digits
from tapgate_client.phone_numbers import PhoneNumberError

_FILLER_PATTERN = re.compile(
    r"^(?:(?:to|for|the|number|phone|no|tel|au|à|a|le|numero|numéro|card|carte|la|serial|série"
    r"|it|c'est|my|ma|mon|is|est)[ :.]+)+",
    re.IGNORECASE,
)
_PHONE_PATTERN = re.compile(r"\+?[0-9][0-9 ().-]{4,24}[0-9]")
_SERIAL_PATTERN = re.compile(r"[A-Za-z0-9-]{1,32}", re.ASCII)
_MAX_PHONE_DIGITS = 15
_TO_PATTERN = re.compile(
    r"(?<=\s)(?:to|for|fɔ|fo|gi|au|à|vers|sur|pour|na"
    # French "à" without its accent, but not the English article or the Krio pronoun.
    r"|(?<!mek )(?<!make )a(?!\s+(?:wan|want|nid|ned|lek|go|de|hundred)\b))\s+",
    re.IGNORECASE,
)
_ARTICLE_PATTERN = re.compile(
    r"^(?:(?:the|my|la|le|ma|mon|number|card|carte|numéro|numero|phone|serial|no\.?|n°)[ :]+)+",
    re.IGNORECASE,
)
#: A second number in the same part makes the amount ambiguous.
_NUMBER_PATTERN = re.compile(r"[0-9](?:[0-9 .,']*[0-9])?")
_NEGATIVE_PATTERN = re.compile(r"(?:^|\s)[-−]\s?[0-9]")
#: A payee in one word that cannot be an amount.
_PAYEE_PATTERN = re.compile(
    r"(?<!\S)(?:(?:\+|0)[0-9]{7,14}|(?=\S*[0-9])[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+)(?![^\s,;.!])",
    re.ASCII,
)
_NAME_PATTERN = re.compile(r"[^\W\d_][^\W\d_'.-]*(?: [^\W\d_][^\W\d_'.-]*){0,2}")
_POSSESSIVE_PATTERN = re.compile(r"^(?:(?:my|mi|the|mon|ma|le|la)\s+)+", re.IGNORECASE)
#: Words that do not identify a payee.
_GENERIC_PAYEE_WORDS = frozenset(
    """someone somebody anyone a an another other friend person people card account wallet number
    phone me myself you him her them it us this that today tomorrow now please quelqu'un une un
    autre ami amie personne carte compte moi lui elle eux""".split()
)


class ParsedTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a transfer request. Missing or ambiguous parts are None.

    The payee is a phone number or a card serial, never both.
    """

    amount: str | None = None
    phone: str | None = None
    card_serial: str | None = None


def parse_phone(text: str, own_phone: str | None) -> str | None:
    """Return the phone number in E.164 format, or None if the text is not a phone number.

    A local number belongs to the country of `own_phone`, and is not accepted without it.
    """
    cleaned = _strip_fillers(text).rstrip(".!")
    if not _PHONE_PATTERN.fullmatch(cleaned):
        return None
    if cleaned.startswith("00"):
        cleaned = "+" + cleaned[2:]
    if cleaned.startswith("+"):
        return _normalize(cleaned)
    region = _get_region(own_phone)
    if region is None:
        return None
    try:
        number = phonenumbers.parse(cleaned, region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number):
        return _parse_without_plus(cleaned)
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _normalize(number: str) -> str | None:
    """Return an international number as the gateway stores it, or None if it cannot have it."""
    try:
        return normalize_phone_number(number)
    except PhoneNumberError:
        return None


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
    if cleaned.startswith("0"):
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


def parse_payee(text: str, own_phone: str | None) -> ParsedTransfer | None:
    number = parse_phone(text, own_phone)
    if number is not None:
        return ParsedTransfer(phone=number)
    serial = parse_card_serial(text)
    return None if serial is None else ParsedTransfer(card_serial=serial)


def parse_transfer(text: str, own_phone: str | None, currency: str) -> ParsedTransfer:
    """Parse a transfer: `"send 500 to 076 123 456"`, `"envoie 2000 à la carte CARD-123"`."""
    head, *payee_parts = _TO_PATTERN.split(write_digits(text))
    payees = [
        payee for part in payee_parts if (payee := _parse_payee_part(part, own_phone)) is not None
    ]
    if not payees:
        return _parse_without_preposition(head, payee_parts, own_phone, currency)
    payee = payees[0] if len(payees) == 1 else ParsedTransfer()
    amount_part = head
    if len(payee_parts) == 1 and not _NUMBER_PATTERN.search(head):
        # The amount may follow the payee, as in "Send to CARD-1 500".
        amount_part = _PAYEE_PATTERN.sub(" ; ", payee_parts[0], count=1)
    return msgspec.structs.replace(payee, amount=_parse_single_amount(amount_part, currency))


def _parse_without_preposition(
    head: str, payee_parts: list[str], own_phone: str | None, currency: str
) -> ParsedTransfer:
    """Parse `"send CARD-1 500"`: payee and amount in either order, each as one word."""
    found = list(_PAYEE_PATTERN.finditer(head))
    payee = parse_payee(found[0][0], own_phone) if len(found) == 1 and not payee_parts else None
    if payee is None:
        return ParsedTransfer(amount=_parse_single_amount(head, currency))
    rest = _PAYEE_PATTERN.sub(" ; ", head)
    return msgspec.structs.replace(payee, amount=_parse_single_amount(rest, currency))


def parse_payee_name(text: str) -> str | None:
    """Return the payee's name, such as `"Mohamed"` in `"send 8 to Mohamed"`, or None."""
    _, *payee_parts = _TO_PATTERN.split(normalize_digits(text).rstrip(" .!?"))
    if len(payee_parts) != 1:
        return None
    name = _POSSESSIVE_PATTERN.sub("", payee_parts[0]).strip()
    if not _NAME_PATTERN.fullmatch(name) or not _GENERIC_PAYEE_WORDS.isdisjoint(
        name.lower().split()
    ):
        return None
    return name


def has_unsupported_amount(text: str, currency: str) -> bool:
    """Return whether the text has an ambiguous amount or another currency: "two fifty", "$5"."""
    message = write_digits(text).lower()
    if AMBIGUOUS_NUMBER in message:
        return True
    around = re.search(r"[$€£]\s?[0-9]|[0-9]\s?(?:[$€£]|[km]\b)", message)
    words = message.split()
    beside = [word for word, number in pairwise(words) if number[0].isdigit()]
    beside += [word for number, word in pairwise(words) if number[-1].isdigit()]
    return around is not None or any(is_other_unit(word, currency) for word in beside)


def _parse_payee_part(part: str, own_phone: str | None) -> ParsedTransfer | None:
    """Return the phone number or card serial at the start of the text after "to", or None."""
    rest = _ARTICLE_PATTERN.sub("", part).strip()
    whole = parse_payee(rest, own_phone)
    if whole is not None:
        return whole
    first = _PAYEE_PATTERN.match(rest)
    if first is not None and (payee := parse_payee(first[0], own_phone)) is not None:
        return payee
    number = re.match(r"\+?[0-9][0-9 ().-]{5,24}[0-9](?=\s+[A-Za-z]|$)", rest)
    if number is not None:
        found = parse_phone(number[0], own_phone)
        return None if found is None else ParsedTransfer(phone=found)
    serial = parse_card_serial(rest.split(" ", 1)[0].rstrip(",;."))
    return None if serial is None else ParsedTransfer(card_serial=serial)


def _parse_single_amount(part: str, currency: str) -> str | None:
    """Return the amount if the part has exactly one number, without another unit, or None."""
    numbers = list(_NUMBER_PATTERN.finditer(part))
    if AMBIGUOUS_NUMBER in part:
        return None
    if _NEGATIVE_PATTERN.search(part) or len(numbers) != 1:
        return None
    before, after = part[: numbers[0].start()].lower(), part[numbers[0].end() :].lower()
    around = [*before.split()[-1:], *after.split()[:1]]
    if any(is_other_unit(word, currency) for word in around):
        return None
    names = list_currency_names(currency)
    glued = re.search(r"[^\W_]+$", before), re.match(r"[^\W_]+", after)
    if any(match is not None and match[0] not in names for match in glued):
        return None
    if after[:1] in {"%", "-", "/"} or before[-1:] in {"-", "/", "$", "€", "£"}:
        return None
    return parse_amount(numbers[0][0], currency)
