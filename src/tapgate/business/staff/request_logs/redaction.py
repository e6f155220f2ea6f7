"""Redaction of logged requests: a value is kept only if its field's declaration allows it.

The declared type of a field says in which form its value may be logged, if at all. Clients also
send secrets in the wrong field, so a value in another form is masked. A field's name is kept only
if a schema declares it, because a misplaced secret can also be a name.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, get_args, get_origin
from urllib.parse import parse_qsl

import msgspec

from tapgate.events.audit.entry import MASK
from tapgate.http.field_checks import get_default_rule
from tapgate.http.json_schema import get_struct, iter_union_members
from tapgate_client import schemas
from tapgate_client.schemas.fields import LogForm, Rule
from tapgate_client.schemas.values import TextType

MAX_BODY_BYTES: Final = 8 * 1024
_MAX_DEPTH: Final = 6
_MAX_ITEMS: Final = 100
_MAX_PARAMETERS: Final = 20

#: Texts of error responses, which never repeat a submitted value.
_ERROR_TEXTS: Final = frozenset({"error", "message"})
#: Words in error details that no schema declares.
_DETAIL_WORDS: Final = frozenset({"code", "required", "retry_after", "scope", "transaction_status"})

#: Between nested field names in error details, such as `data[0].amount`.
_PATH_SEPARATOR: Final = re.compile(r"\[[0-9]{1,4}\]|\.")
#: Reported in error details instead of a field.
_WHOLE_BODY: Final = "body"
_PATTERNS: Final = {
    # Requests have amounts such as `1234.50`, and most responses `1,234.50 SLE`.
    LogForm.NUMBER: re.compile(
        r"-?([0-9]{1,15}|[0-9]{1,3}(,[0-9]{3}){1,4})(\.[0-9]{1,4})?( [A-Z]{3})?"
    ),
    # A date, or a word that is shorter than a credential and contains a letter or a colon. It
    # cannot be a PIN, a code, a phone number or a card number, with or without separators.
    LogForm.WORD: re.compile(
        r"20[0-9]{2}-[01][0-9]-[0-3][0-9]|(?![0-9._-]+\Z)[A-Za-z0-9][A-Za-z0-9._:-]{0,39}"
    ),
}


class _Kept:
    """Loggable part of a field: scalars in `forms`, and objects with these `fields`."""

    def __init__(self) -> None:
        self.forms: set[LogForm] = set()
        self.fields: Mapping[str, _Kept] | None = None
        self.has_masked = False

    def add(self, kind: Any) -> None:
        """Add the loggable part of a type."""
        for member in iter_union_members(kind):
            bare, *notes = get_args(member) if get_origin(member) is Annotated else (member,)
            if get_struct(bare) is not None:
                self.fields = _list_kept_fields(bare)
            elif get_origin(bare) is list:
                self.add(get_args(bare)[0])
            else:
                self._add_scalar(bare, notes)

    def _add_scalar(self, kind: Any, notes: list[Any]) -> None:
        form = LogForm.NUMBER if kind in (int, float) else None
        declared = [note for note in notes if isinstance(note, TextType | Rule)]
        rule = declared[0] if declared else get_default_rule(kind)
        form = form if rule is None else rule.log_form
        if form is not None:
            self.forms.add(form)
        elif kind is not bool:
            self.has_masked = True


@cache
def _list_kept_fields(kind: Any) -> Mapping[str, _Kept]:
    """Return the loggable parts of a struct's fields, by encoded name."""
    found: dict[str, _Kept] = {}
    for field in msgspec.structs.fields(kind):
        found[field.encode_name] = kept = _Kept()
        kept.add(field.type)
    return found


_NOTHING: Final = _Kept()


@cache
def list_masked_names(kind: Any) -> frozenset[str]:
    """Return the names of the fields that a type masks, including those in nested structs."""
    if get_struct(kind) is None:
        return frozenset()
    names, pending, seen = set(), [_list_kept_fields(kind)], set()
    while pending:
        fields = pending.pop()
        if id(fields) in seen:
            continue
        seen.add(id(fields))
        for name, kept in fields.items():
            if kept.has_masked:
                names.add(name)
            if kept.fields is not None:
                pending.append(kept.fields)
    return frozenset(names)


@cache
def _list_schemas() -> tuple[type[msgspec.Struct], ...]:
    found, pending = [], list(msgspec.Struct.__subclasses__())
    while pending:
        struct = pending.pop()
        pending += struct.__subclasses__()
        if struct.__module__.startswith(schemas.__name__):
            found.append(struct)
    return tuple(found)


@cache
def get_declared_names() -> frozenset[str]:
    """Return the names of all fields in requests and responses."""
    names = {name for struct in _list_schemas() for name in struct.__struct_encode_fields__}
    return frozenset(names | _ERROR_TEXTS | _DETAIL_WORDS | {_WHOLE_BODY})


@cache
def _get_kept_detail(name: str) -> _Kept:
    """Return the loggable part of an error detail: what every field with its name allows."""
    kept = _Kept()
    if name in _DETAIL_WORDS:
        kept.forms.add(LogForm.WORD)
        return kept
    for struct in _list_schemas():
        for field in msgspec.structs.fields(struct):
            if field.encode_name == name:
                kept.add(field.type)
    return _NOTHING if kept.has_masked else kept


def _is_declared(path: str) -> bool:
    names = filter(None, _PATH_SEPARATOR.split(path))
    return all(name in get_declared_names() for name in names)


def redact_body(body: bytes, kind: Any, other: Any = None) -> str | None:
    """Return a JSON body without secrets and personal data. `kind` is its declared type.

    A field that `other`, the type of the other side of the exchange, masks is masked too: it would
    disclose what the other side hides. Return None if the body is empty, too large or not a JSON
    object.
    """
    value = _decode_object(body)
    if value is None:
        return None
    fields = {} if get_struct(kind) is None else _list_kept_fields(kind)
    redacted = _redact_object(value, fields, list_masked_names(other))
    return msgspec.json.encode(redacted).decode()


def redact_error(body: bytes) -> str | None:
    """Return an error body without submitted names, or None like `redact_body`."""
    value = _decode_object(body)
    if value is None:
        return None
    redacted = {
        name: item if name in _ERROR_TEXTS and isinstance(item, str) else _redact_detail(name, item)
        for name, item in list(value.items())[:_MAX_ITEMS]
    }
    if not all(map(_is_declared, _list_invalid_fields(value))):
        redacted["message"] = MASK  # it names the invalid fields
    return msgspec.json.encode(redacted).decode()


def _decode_object(body: bytes) -> dict[str, Any] | None:
    if not body or len(body) > MAX_BODY_BYTES:
        return None
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _list_invalid_fields(error: dict[str, Any]) -> list[str]:
    details = error.get("details")
    fields = details.get("fields") if isinstance(details, dict) else None
    return list(fields) if isinstance(fields, dict) else []


def redact_query(query: bytes, kind: Any) -> str | None:
    """Return query parameters as a JSON object, or None if there are none."""
    if not query:
        return None
    try:
        parameters = dict(
            parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
        )
    except ValueError:
        return None
    fields = {} if kind is None else _list_kept_fields(kind)
    redacted = _redact_object(parameters, fields, frozenset())
    return msgspec.json.encode(redacted).decode() if parameters else None


def is_word(text: str) -> bool:
    """Return whether a text may be logged: an ID or another word that cannot be a secret."""
    return _PATTERNS[LogForm.WORD].fullmatch(text) is not None


def redact_path(path: str, template: str) -> str:
    """Return a path whose parameters are masked unless they are IDs or other words."""
    segments = zip(path.split("/"), template.split("/"), strict=True)
    return "/".join(
        value if not part.startswith("{") or is_word(value) else MASK for value, part in segments
    )


def _redact_object(
    value: dict[str, Any], fields: Mapping[str, _Kept], hidden: frozenset[str], depth: int = 0
) -> dict[str, Any]:
    return {
        (name if name in get_declared_names() else MASK): _redact(
            item, _NOTHING if name in hidden else fields.get(name, _NOTHING), hidden, depth + 1
        )
        for name, item in list(value.items())[:_MAX_ITEMS]
    }


def _redact_detail(name: str, value: Any, depth: int = 0) -> Any:
    """Redact part of an error. The gateway chose its names, except invalid field names."""
    if not isinstance(value, dict):
        return _redact(value, _get_kept_detail(name), frozenset(), depth)
    if name == "fields":
        return {field: text for field, text in value.items() if _is_declared(field)}
    if depth > _MAX_DEPTH:
        return MASK
    return {key: _redact_detail(key, item, depth + 1) for key, item in value.items()}


def _redact(value: Any, kept: _Kept, hidden: frozenset[str], depth: int) -> Any:
    if isinstance(value, dict):
        is_kept = kept.fields is not None and depth <= _MAX_DEPTH
        return _redact_object(value, kept.fields or {}, hidden, depth) if is_kept else MASK
    if isinstance(value, list):
        is_kept = bool(kept.forms or kept.fields) and depth <= _MAX_DEPTH
        items = value[:_MAX_ITEMS]
        return [_redact(item, kept, hidden, depth + 1) for item in items] if is_kept else MASK
    if value is None or isinstance(value, bool):
        return value
    return value if any(_has_form(value, form) for form in kept.forms) else MASK


def _has_form(value: Any, form: LogForm) -> bool:
    if form is LogForm.WORD and not isinstance(value, str):
        return False
    return _PATTERNS[form].fullmatch(str(value)) is not None
