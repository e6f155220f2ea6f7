"""Form field errors, with the form's labels instead of the API's names."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.labels import use_console_terms
from tapgate.sites.console.translation.translator import Translator
from tapgate_client.errors import ApiError

_SELECTED_KINDS: Final = ("choice", "whole_choice", "duration", "picker", "many")


def describe_field_error(field: Field, message: str, translator: Translator) -> str:
    """Return a field's error as a sentence, such as `Select at least one scope`."""
    if message[:1].isupper():  # a sentence from the console itself
        return message
    sentences = _describe_missing_value(field, message)
    if sentences is None:
        return describe_value_error(field.label, message, translator)
    return sentences[0] if translator.is_source else translator.translate(sentences[1])


def _describe_missing_value(field: Field, message: str) -> tuple[str, str] | None:
    """Return a sentence with the label, and one without it, which can be translated."""
    noun = _lower_first(field.label)
    if field.kind == "many" and message.startswith(("must have 1 ", "must have at least one")):
        return f"Select at least one {noun.removesuffix('s')}", "Select at least one value"
    if message == "is required" and field.kind in _SELECTED_KINDS:
        return f"Select {_add_article(noun)}", "Select a value"
    if message == "is required":
        return f"Enter {_add_article(noun)}", "Enter a value"
    if message.startswith("must be an ID that starts with"):
        return f"Select {_add_article(noun)} from the list", "Select a value from the list"
    return None


def describe_value_error(label: str, message: str, translator: Translator) -> str:
    """Return the API's message about a value, after its label: `Amount must be positive`."""
    if translator.is_source:
        return f"{label} {use_console_terms(message)}"
    problem = translator.translate_message(message) or translator.translate("is not valid")
    return translator.translate("{label} {problem}", label=label, problem=problem)


def describe_error(error: ApiError, fields: Iterable[Field], translator: Translator) -> str:
    """Return an error's message, with the form's labels for the API's names."""
    message = error.message or error.error
    if translator.is_source:
        return use_console_terms(_replace_field_names(message, fields))
    name, _, problem = message.partition(" ")
    label = next((field.label for field in fields if field.name == name), None)
    if label is not None and message[:1].islower():
        return describe_value_error(label, problem, translator)
    return translator.translate_error(error)


def _replace_field_names(message: str, fields: Iterable[Field]) -> str:
    """Replace the API's field names in a message with the form's labels."""
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
