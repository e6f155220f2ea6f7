"""Parsing of browser input: queries, form fields and cookies."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from tapgate_client.errors import ApiError, Code

_MAX_FIELDS: Final = 200
FORM_CONTENT_TYPE: Final = "application/x-www-form-urlencoded"


class FormData:
    """Form or query fields by name. Blank values are treated as absent."""

    def __init__(self, encoded: bytes) -> None:
        self._values: dict[str, list[str]] = {}
        try:
            pairs = parse_qsl(encoded.decode("ascii"), errors="strict", max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise ApiError(Code.INVALID_REQUEST, "The form data or the URL is malformed") from None
        self._raw_values = dict(pairs)
        for name, value in pairs:
            if value.strip():
                self._values.setdefault(name, []).append(value.strip())

    def get(self, name: str) -> str | None:
        """Return the first value of a field, without surrounding whitespace."""
        values = self._values.get(name)
        return values[0] if values else None

    def get_raw(self, name: str) -> str | None:
        """Return the last value of a field, with whitespace, which may be part of a password."""
        return self._raw_values.get(name)

    def get_all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def pick(self, *names: str) -> dict[str, str]:
        """Return the first values of those `names` that are present."""
        return {name: self._values[name][0] for name in names if name in self._values}

    def __contains__(self, name: str) -> bool:
        return name in self._values


def parse_cookies(header: str | None) -> Mapping[str, str]:
    pairs = (part.strip().partition("=") for part in (header or "").split(";"))
    return {name: value for name, _, value in pairs if name}
