"""Languages and their text catalogs."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final

import msgspec

from tapgate.core.settings import Settings
from tapgate.sites.console.labels import (
    get_decline_reason,
    get_state_label,
    humanize,
    use_console_terms,
)
from tapgate.sites.console.numbers import get_number_format
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.cards import CardBlockReason

#: Catalog file with the API messages, which are matched as patterns.
_API_CATALOG: Final = "api.toml"
#: Catalog file with the approval summaries, which are matched as patterns too.
_SUMMARY_CATALOG: Final = "summaries.toml"
#: Catalog with the setting labels, which are declared with the settings.
SETTING_CATALOG: Final = "settings"
#: Placeholders of summaries that contain a name of the API.
_NAMES: Final = frozenset({"type", "role", "owner_type"})
_SPACE: Final = re.compile(r" (?=[:;?!%»])|(?<=«) ")
_PLACEHOLDER: Final = re.compile(r"{(\w+)}")


def source_text(source: str) -> str:
    """Mark a text that is translated later, so that the tests find it."""
    return source


class Language(StrEnum):
    EN = "en"
    FR = "fr"


class Translator:
    """Texts of one language. English is the source language, and has no catalog."""

    def __init__(self, language: Language, catalogs: Mapping[str, Mapping[str, str]]) -> None:
        self.language = language
        self.catalogs = catalogs
        self.numbers = get_number_format(language)
        self.texts = {key: text for texts in catalogs.values() for key, text in texts.items()}

    @property
    def is_source(self) -> bool:
        return self.language is Language.EN

    def translate(self, text: str, /, **values: Any) -> str:
        """Translate a text, with its placeholders filled in.

        A text without a translation is returned unchanged: it is data, such as a name.
        """
        translated = self.texts.get(text, text)
        return translated.format_map(values) if values else translated

    def translate_label(self, label: str) -> str:
        """Translate an API value's label, which `label: ` may precede."""
        return self.texts.get(f"label: {label}") or self.translate(label)

    def translate_state(self, value: str | None, noun: str = "") -> str:
        """Return a status label that agrees with the noun.

        `gender: card` in the catalog says which gender a type of records has. `feminine: Active` is
        the status label for nouns with this gender, if it differs.
        """
        label = get_state_label(value, noun)
        gender = self.texts.get(f"gender: {noun}")
        return self.texts.get(f"{gender}: {label}") or self.translate_label(label)

    def translate_tab(self, label: str) -> str:
        """Return the label for a tab with records in one status, which `tab: ` may precede."""
        return self.texts.get(f"tab: {label}") or self.translate(label)

    def translate_name(self, name: str) -> str:
        """Translate a name that an installation has from the start.

        `name: ` precedes it in the catalog. Names that people entered are not translated.
        """
        return self.texts.get(f"name: {name}", name)

    def translate_event(self, event: str) -> str:
        """Return a label for an audit log event, such as `card.blocked`.

        Translations join a noun for the resource and one for the action, which need no agreement.
        """
        resource, _, action = event.partition(".")
        noun, verb = self.texts.get(f"resource: {resource}"), self.texts.get(f"action: {action}")
        return f"{noun}\u00a0: {verb}" if noun and verb else humanize(event)

    def translate_resource_type(self, resource_type: str | None) -> str:
        label = humanize(resource_type)
        return self.texts.get(f"resource: {resource_type}") or self.translate_label(label)

    def translate_field(self, name: str) -> str:
        """Return a label for an API field name."""
        return self.texts.get(f"field: {name}") or self.translate_label(humanize(name))

    def translate_summary(self, summary: str) -> str:
        """Return an approval's summary. A summary without a translation is unchanged."""
        for pattern, translated in self._summary_patterns:
            if match := pattern.fullmatch(summary):
                values = match.groupdict()
                if "summary" in values:
                    values["summary"] = self.translate_summary(values["summary"])
                return translated.format_map(
                    {name: self._show_value(name, value) for name, value in values.items()}
                )
        return summary

    def _show_value(self, name: str, value: str) -> str:
        """Return a value within a summary: a label, an amount, or the name of a record."""
        if name in _NAMES:
            return self.translate_label(humanize(value))
        return value if self.is_source else self.numbers.localize_amount(value)

    def translate_reason(self, reason: str) -> str:
        """Return an audit entry's reason.

        It is the reason for blocking a card, an error code, an API message or text that staff
        wrote.
        """
        if reason in tuple(CardBlockReason):
            return self.translate_state(reason, "card")
        if reason in tuple(Code):
            return self.translate_label(get_decline_reason(reason))
        return reason if self.is_source else self.translate_message(reason) or reason

    def translate_plural(self, count: int, one: str, other: str, **values: Any) -> str:
        """Return the text for a number, such as `{count} agents`. Zero is singular in French."""
        is_one = count == 1 if self.is_source else count < 2
        return self.translate(one if is_one else other).format(
            count=self.numbers.format_number(count), **values
        )

    def translate_message(self, message: str) -> str | None:
        """Translate an API message, or return None if there is no translation."""
        text = use_console_terms(message)
        if self.is_source or text in self.texts:
            return self.texts.get(text, text)
        for pattern, translated in self._patterns:
            if match := pattern.fullmatch(text):
                values = match.groupdict()
                return translated.format_map(
                    {name: self._translate_value(value) for name, value in values.items()}
                )
        return None

    def _translate_value(self, value: str) -> str:
        """Translate a decline reason or an amount within a message.

        A reason begins with a small letter there.
        """
        label = self.texts.get(value[:1].upper() + value[1:])
        return (
            self.numbers.localize_amount(value) if label is None else label[:1].lower() + label[1:]
        )

    def translate_error(self, error: ApiError) -> str:
        """Return an error's message, or its code's message if it has no translation."""
        message = error.message or error.error
        return self.translate_message(message) or self.translate(use_console_terms(error.error))

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        texts = self.catalogs.get(_API_CATALOG, {})
        return [(_compile(key), text) for key, text in texts.items() if "{" in key]

    @cached_property
    def _summary_patterns(self) -> list[tuple[re.Pattern[str], str]]:
        texts = self.catalogs.get(_SUMMARY_CATALOG)
        if texts is None:  # in English too, names of the API are replaced by their labels
            texts = {key: key for key in get_translator(Language.FR).catalogs[_SUMMARY_CATALOG]}
        return [(_compile(key), text) for key, text in texts.items()]


@cache
def get_translator(language: Language) -> Translator:
    return Translator(language, dict(_load_catalogs(language)))


def negotiate(accept_language: str | None) -> Language:
    """Return the language that a browser prefers, or English."""
    best, best_weight = Language.EN, 0.0
    for item in (accept_language or "").split(","):
        tag, _, weight_text = item.partition(";")
        code = tag.strip().lower().partition("-")[0]
        weight = _parse_weight(weight_text)
        if code in tuple(Language) and weight > best_weight:
            best, best_weight = Language(code), weight
    return best


def _parse_weight(text: str) -> float:
    name, _, value = text.strip().partition("=")
    if not name:
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


def _load_catalogs(language: Language) -> Iterator[tuple[str, dict[str, str]]]:
    if language is not Language.EN:
        for file in sorted(files(__package__).joinpath(language).iterdir(), key=lambda f: f.name):
            if file.name.endswith(".toml"):
                yield file.name, _parse_catalog(file.read_text())
        settings = Settings.declared.values()
        yield SETTING_CATALOG, {item.label: _bind_spaces(item.french) for item in settings}


def _parse_catalog(content: str) -> dict[str, str]:
    """Parse TOML that has only lines of the form `"key" = "text"`, and comments.

    This is much faster than `tomllib`, and each process does it when it starts.
    """
    texts = {}
    for line in content.splitlines():
        key, separator, text = line.partition('" = "')
        if separator:
            texts[msgspec.json.decode(f'{key}"', type=str)] = _bind_spaces(
                msgspec.json.decode(f'"{text}', type=str)
            )
    return texts


def _bind_spaces(text: str) -> str:
    """Return a text with no-break spaces before high punctuation, as in French."""
    return _SPACE.sub("\u00a0", text)


def _compile(key: str) -> re.Pattern[str]:
    """Return the pattern for a message with placeholders."""
    parts = _PLACEHOLDER.split(key)
    return re.compile(
        "".join(
            f"(?P<{part}>.+?)" if index % 2 else re.escape(part) for index, part in enumerate(parts)
        )
    )
