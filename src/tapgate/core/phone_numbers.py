"""Phone numbers: the rule that both services share, and numbers as people type them.

The gateway and the messenger use the same rule, so every number that can be registered can also use
the chat.
"""

from typing import Final

import phonenumbers

from tapgate_client.phone_numbers import (
    PhoneNumberError,
    remove_separators,
    require_digit_count,
)

_MAX_TRUNK_PREFIXES: Final = 15
_SEPARATORS: Final = str.maketrans("", "", " -.()/")
#: Shorter texts are not looked up as the beginning of a phone number.
_MIN_PREFIX_DIGITS: Final = 3


def normalize_phone_number(text: str) -> str:
    """Return an international number, with or without separators, in E.164 format.

    Only the country code and the number of digits are checked, because numbering plans change
    faster than any table.
    """
    digits = remove_separators(text)
    for _ in range(_MAX_TRUNK_PREFIXES):
        require_digit_count(digits)
        try:
            normalized = _format_e164(phonenumbers.parse(digits))
        except phonenumbers.NumberParseException:
            raise PhoneNumberError("must start with a valid country code") from None
        # Each round removes one trunk prefix, such as the zero in +232 076. The result must not
        # change when it is normalized again, or the number would not be found.
        if normalized == digits:
            return normalized
        digits = normalized
    raise PhoneNumberError("must be a phone number in E.164 format")


def _format_e164(number: phonenumbers.PhoneNumber) -> str:
    return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164))


def is_country(code: str) -> bool:
    """Return whether an ISO 3166 code names a country with phone numbers."""
    return code in phonenumbers.SUPPORTED_REGIONS


def parse_phone_number(text: str, country: str | None) -> str | None:
    """Return a phone number in E.164 format, or None if the text is not a phone number.

    `076 123456` is a number in `country`. `0023276123456` and `23276123456` are international.
    """
    cleaned = _clean(text)
    if cleaned is None:
        return None
    # Digits are taken for an international number only if it is certainly one.
    for candidate, is_number in (
        (cleaned, phonenumbers.is_possible_number),
        (f"+{cleaned}", phonenumbers.is_valid_number),
    ):
        try:
            number = phonenumbers.parse(candidate, country)
        except phonenumbers.NumberParseException:
            continue
        if is_number(number):
            return _format_e164(number)
    return None


def list_phone_prefixes(text: str, country: str | None) -> list[str]:
    """Return the E.164 prefixes that an incomplete number may have.

    Digits without a plus sign begin a local or an international number.
    """
    cleaned = _clean(text)
    if cleaned is None or len(cleaned.lstrip("+0")) < _MIN_PREFIX_DIGITS:
        return []
    if cleaned.startswith("+"):
        return [cleaned]
    local = [] if country is None else [f"+{_get_country_code(country)}{cleaned.lstrip('0')}"]
    return local if cleaned.startswith("0") else [*local, f"+{cleaned}"]


def mask_phone_number(phone_number: str) -> str:
    """Mask a phone number so that its owner still recognizes it, as in `+232*****456`."""
    return f"{phone_number[:4]}{'*' * (len(phone_number) - 7)}{phone_number[-3:]}"


def _clean(text: str) -> str | None:
    """Return the digits, with a plus sign if international; None if there are other characters."""
    cleaned = text.translate(_SEPARATORS)
    if cleaned.startswith("00"):
        cleaned = f"+{cleaned[2:]}"
    digits = cleaned.removeprefix("+")
    return cleaned if digits.isascii() and digits.isdigit() else None


def _get_country_code(country: str) -> int:
    return int(phonenumbers.country_code_for_region(country))
