"""Declarations of form fields."""

from typing import Any, Literal, NamedTuple

from tapgate.sites.console.labels import humanize
from tapgate.sites.console.translation.translator import Translator

FieldKind = Literal[
    "text", "long", "number", "money", "choice", "whole_choice", "many", "check", "secret", "pin",
    "email", "tel", "date", "color", "moment", "picture", "hidden", "credential", "lines", "picker",
    "duration",
]  # fmt: skip


class Field(NamedTuple):
    """Form field for a request body field. A choice is a value or a (value, label) pair.

    Without a declared label, the label is the field name in words. A duration is a choice of
    seconds, to which the form adds a different current value.
    """

    name: str
    declared_label: str = ""
    kind: FieldKind = "text"
    choices: tuple[str | tuple[str, str], ...] = ()
    hint: str = ""
    required: bool = True
    value: Any = None  # the initial value
    resets: bool = False  # when left empty, an empty string is sent to reset the value
    picks: str = ""  # kinds of records that a picker finds, separated by commas
    record_field: str = ""  # the record field with the current value, if not `name`

    @property
    def label(self) -> str:
        return self.declared_label or humanize(self.name)

    def translate(self, translator: Translator) -> "Field":
        return self._replace(
            declared_label=translator.translate(self.label),
            hint=translator.translate(self.hint),
            choices=tuple(
                choice
                if isinstance(choice, str)
                else (choice[0], translator.translate_label(choice[1]))
                for choice in self.choices
            ),
        )

    @property
    def options(self) -> list[tuple[str, str]]:
        return [
            choice if isinstance(choice, tuple) else (choice, choice) for choice in self.choices
        ]
