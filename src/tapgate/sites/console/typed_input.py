"""Phone numbers and search texts as people type them, in the form that the API accepts."""

from tapgate.core.phone_numbers import parse_phone_number


def clean_phone_number(text: str | None, country: str | None) -> str | None:
    """Return a phone number in international format, or the text if it is not a phone number."""
    return text and (parse_phone_number(text, country) or text)
