"""Requests and responses for the platform's branding and an admin's preferences."""

from functools import cache
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from tapgate_client.colors import MIN_TEXT_CONTRAST, WHITE, get_contrast, is_color
from tapgate_client.schemas.clearable_fields import OrEmptyRule
from tapgate_client.schemas.fields import Choice, InvalidValueError, NameRule, Rule, TextRule
from tapgate_client.schemas.values import Example, Name, Time, Word

THEMES: Final = ("light", "dark")
LANGUAGES: Final = ("en", "fr")
#: Length of the logo's data URI, which is a third longer than the file.
MAX_LOGO_CHARACTERS: Final = 400_000
_LOGO_PREFIX: Final = "data:image/png;base64,"
_MAX_TIMEZONE_LENGTH: Final = 64


class ColorRule(Rule):
    """Color in hexadecimal notation that is dark enough for white text."""

    example = "#0f766e"

    def check(self, value: str) -> str:
        if not is_color(value):
            raise InvalidValueError("must be a color such as #0f766e")
        if get_contrast(value, WHITE) < MIN_TEXT_CONTRAST:
            raise InvalidValueError(
                f"must be darker: white text needs a contrast of at least {MIN_TEXT_CONTRAST}:1"
            )
        return value.lower()

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": "^#[0-9a-fA-F]{6}$"}


class LogoRule(Rule):
    """PNG image as a data URI. The image is decoded later, in a thread."""

    example = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="  # noqa: E501
    max_json_bytes = MAX_LOGO_CHARACTERS

    def check(self, value: str) -> str:
        if not value.startswith(_LOGO_PREFIX):
            raise InvalidValueError(f"must be a PNG image as a data URI: {_LOGO_PREFIX}...")
        if len(value) > MAX_LOGO_CHARACTERS:
            raise InvalidValueError("must be at most 300 KB")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": "^data:image/png;base64,", "maxLength": MAX_LOGO_CHARACTERS}


#: Reads the files of all time zones once.
_list_timezones = cache(available_timezones)


class TimezoneRule(Rule):
    """Time zone name, such as `Africa/Freetown`."""

    example = "Africa/Freetown"

    def check(self, value: str) -> str:
        if len(value) > _MAX_TIMEZONE_LENGTH or value not in _list_timezones():
            raise InvalidValueError("must be a time zone such as Africa/Freetown")
        return ZoneInfo(value).key

    def to_json_schema(self) -> dict[str, Any]:
        return {"maxLength": _MAX_TIMEZONE_LENGTH}


class BrandingUpdate(msgspec.Struct, kw_only=True):
    name: Annotated[str, OrEmptyRule(NameRule(40))] | None = None
    color: Annotated[str, OrEmptyRule(ColorRule())] | None = None
    support_contact: Annotated[str, OrEmptyRule(NameRule(100)), Example("+23276123456")] | None = (
        None
    )
    statement_header: Annotated[str, OrEmptyRule(TextRule(200))] | None = None
    logo: Annotated[str, OrEmptyRule(LogoRule())] | None = None


class BrandingRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: Name
    color: str
    support_contact: str | None
    statement_header: str | None
    has_logo: bool
    updated_at: Time | None


class PreferencesUpdate(msgspec.Struct, kw_only=True):
    theme: Annotated[str, OrEmptyRule(Choice(*THEMES))] | None = None
    timezone: Annotated[str, OrEmptyRule(TimezoneRule())] | None = None
    language: Annotated[str, OrEmptyRule(Choice(*LANGUAGES))] | None = None


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """How an admin sees the console. Null means the browser's setting."""

    theme: str | None
    timezone: Annotated[str, Example("Africa/Freetown")] | None
    language: Annotated[Word, Example("en")] | None
