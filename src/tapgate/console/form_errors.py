"""Errors of form fields, in the words of the form instead of the API's names."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tapgate.console.form_fields import Field
from tapgate.console.labels import use_console_terms

_SELECTED_KINDS: Final = ("choice", "whole_choice", "picker", "many")


def describe_field_error(field: Field, message: str) -> str:
    """Return the error of a field as a sentence, such as `Select at least one scope`."""
    noun = _lower_first(field.label)
    if field.kind == "many" and message.startswith(("must have 1 ", "must have at least one")):
        return f"Select at least one {noun.removesuffix('s')}"
    if message == "is required":
        return f"{'Select' if field.kind in _SELECTED_KINDS else 'Enter'} {_add_article(noun)}"
    if message.startswith("must be an ID that starts with"):
        return f"Select {_add_article(noun)} from the list"
    if message[:1].isupper():  # a sentence of the console itself
        return message
    return f"{field.label} {use_console_terms(message)}"


def replace_field_names(message: str, fields: Iterable[Field]) -> str:
    """Replace the API's names of fields in a message by the labels of the form."""
    labels: Mapping[str, str] = {field.name: field.label for field in fields}
    if not labels:
        return message
    names = "|".join(re.escape(name) for name in sorted(labels, key=len, reverse=True))
    return re.sub(rf"\b({names})\b(?=\s(?:must|is|has|cannot)\b)", lambda m: labels[m[1]], message)


def _lower_first(label: str) -> str:
    """Return a label within a sentence. Abbreviations such as PIN stay in capitals."""
    return label if label[:2].isupper() else label[:1].lower() + label[1:]


def _add_article(noun: str) -> str:
    if "'s " in noun:
        return f"the {noun}"
    return f"{'an' if noun[:1] in 'aeio' else 'a'} {noun}"
