"""OpenAPI examples of requests and path parameters, with consistent ids and names."""

import re
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

from tapgate import ids
from tapgate.http.checks import get_rule_and_type, is_struct
from tapgate.schemas.fields import IdempotencyKeyRule, TextRule

_EXAMPLE_ID: Final = 1 << 58
#: ID prefixes by the last word of a field name, path segment or struct name.
_ID_PREFIXES: Final = {
    "account": ids.ACCOUNT,
    "actor": ids.ADMIN,
    "admin": ids.ADMIN,
    "agent": ids.AGENT,
    "alert": ids.ALERT,
    "delivery": ids.DELIVERY,
    "document": ids.DOCUMENT,
    "endpoint": ids.WEBHOOK_ENDPOINT,
    "entry": ids.AUDIT_ENTRY,
    "holder": ids.SUBSCRIBER,
    "key": ids.KEY,
    "me": ids.ADMIN,
    "message": ids.MESSAGE,
    "partner": ids.PARTNER,
    "party": ids.SUBSCRIBER,
    "processor": ids.PROCESSOR,
    "resource": ids.SUBSCRIBER,
    "rule": ids.RULE,
    "sender": ids.SUBSCRIBER,
    "statement": ids.STATEMENT,
    "subscriber": ids.SUBSCRIBER,
    "terminal": ids.TERMINAL,
    "transaction": ids.TRANSACTION,
    "user": ids.SUBSCRIBER,
}

#: Examples of text by field name, because a text rule has only a generic example.
_TEXT_EXAMPLES: Final = {
    "address": "12 Siaka Stevens Street, Freetown",
    "alert_type": "UNUSUAL_AMOUNT",
    "business_name": "Kamara Stores",
    "child_name": "Ibrahim Kamara",
    "child_relationship": "son",
    "description": "Float for the weekend",
    "first_name": "Aminata",
    "id_number": "SL-1234567",
    "last_name": "Kamara",
    "memo": "School fees",
    "name": "Kamara Stores",
    "note": "Called the customer",
    "password": "a long pass phrase",
    "reason": "Requested by the customer",
    "resolution_notes": "Confirmed by the customer",
    "card_identifier": "TAP-000001",
    "currency": "SLE",
    "event": "subscriber.blocked",
    "merchant_id": "M-204",
    "merchant_name": "Kamara Stores",
    "partner_reference": "A-17",
    "reference": "A-17",
    "refresh_token": "aB3kLm9QxT7vW2yZ",
    "requirements": "A verified identity document",
    "resource_type": "subscriber",
    "search": "Kamara",
    "transaction_ref": "ORDER-1188",
    "url": "https://shop.example/tapgate",
}

#: Examples of path parameters by the preceding path segment, unless it is the plural of an ID.
_PATH_EXAMPLES: Final = {
    "account-rules": "1",
    "balance": ids.encode(ids.SUBSCRIBER, _EXAMPLE_ID),
    "cards": "TAP-000001",
    "docs": "swagger-ui.css",
    "deliveries": ids.encode(ids.DELIVERY, _EXAMPLE_ID),
    "users": ids.encode(ids.ADMIN, _EXAMPLE_ID),
}


def build_example(kind: Any, name: str = "") -> Any:
    """Return a valid example value of a request type."""
    declared = _get_declared_example(kind)
    rule, bare = get_rule_and_type(kind)
    if declared is not None:
        return declared
    if is_struct(bare):
        names = [(field.encode_name, field.type) for field in msgspec.structs.fields(bare)]
        omitted = getattr(bare, "OMITTED_IN_EXAMPLES", ())
        return {name: build_example(type_, name) for name, type_ in names if name not in omitted}
    if get_origin(bare) is list:
        return [build_example(get_args(bare)[0], name)]
    if isinstance(rule, TextRule) and not isinstance(rule, IdempotencyKeyRule):
        return get_text_example(name) or rule.example
    return True if bare is bool else 1.5 if rule is None else rule.example


def get_path_example(path: str, name: str) -> str:
    """Return an example of the path parameter `{name}`, or the name if there is none."""
    segment = path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
    is_id = name == "id" or name.endswith("_id")
    found = build_id_example(segment.removesuffix("s")) if is_id else None
    return _PATH_EXAMPLES.get(segment) or found or name


def _get_declared_example(kind: Any) -> Any:
    """Return the first example in a type's `msgspec.Meta(examples=[...])`, or None."""
    if get_origin(kind) is Annotated:
        notes = get_args(kind)[1:]
        metas = [note for note in notes if isinstance(note, msgspec.Meta) and note.examples]
        return metas[0].examples[0] if metas and metas[0].examples else None
    choices = [_get_declared_example(choice) for choice in get_args(kind)]
    return next((choice for choice in choices if choice is not None), None)


def get_text_example(name: str) -> str | None:
    """Return the example of a text field, or None for an unknown name."""
    if name in _TEXT_EXAMPLES or not name.endswith("_id"):
        return _TEXT_EXAMPLES.get(name)
    return build_id_example(name.removesuffix("_id"), second=name.startswith("to_"))


def build_id_example(noun: str, *, second: bool = False) -> str | None:
    """Return an example ID of a noun such as `api_key`, or None for an unknown noun."""
    prefix = _ID_PREFIXES.get(re.split("[-_]", noun)[-1])
    return None if prefix is None else ids.encode(prefix, _EXAMPLE_ID + second)
