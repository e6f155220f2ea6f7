"""OpenAPI examples for requests, path parameters and responses, with consistent IDs and names."""

import re
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from tapgate import VERSION
from tapgate.http.checks import get_rule_and_type, is_enum, is_struct
from tapgate.http.json_schema import find_text_type, get_struct, iter_rules, iter_union_members
from tapgate_client import ids, money
from tapgate_client.schemas.fields import IdempotencyKeyRule, TextRule
from tapgate_client.schemas.values import Example

_EXAMPLE_ID: Final = 1 << 58
#: Example for text about which nothing is known.
GENERIC_TEXT: Final = "Done"
#: ID prefixes by the last word in a field name, path segment or struct name.
_ID_PREFIXES: Final = {
    "account": ids.ACCOUNT,
    "actor": ids.ADMIN,
    "admin": ids.ADMIN,
    "agent": ids.AGENT,
    "alert": ids.ALERT,
    "approval": ids.APPROVAL,
    "delivery": ids.DELIVERY,
    "document": ids.DOCUMENT,
    "endpoint": ids.WEBHOOK_ENDPOINT,
    "entry": ids.AUDIT_ENTRY,
    "holder": ids.SUBSCRIBER,
    "key": ids.KEY,
    "keyset": ids.CARD_KEYSET,
    "log": ids.REQUEST_LOG,
    "me": ids.ADMIN,
    "message": ids.MESSAGE,
    "partner": ids.PARTNER,
    "party": ids.SUBSCRIBER,
    "processor": ids.PROCESSOR,
    "request": ids.SUPPORT_REQUEST,
    "resource": ids.SUBSCRIBER,
    "rule": ids.RULE,
    "sender": ids.SUBSCRIBER,
    "session": ids.SESSION,
    "statement": ids.STATEMENT,
    "subscriber": ids.SUBSCRIBER,
    "terminal": ids.TERMINAL,
    "transaction": ids.TRANSACTION,
    "user": ids.SUBSCRIBER,
}

#: Text examples by field name, because a text rule has only a generic example.
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
    "current_password": "a long pass phrase",
    "new_password": "another long pass phrase",
    "password": "a long pass phrase",
    "reason": "Requested by the customer",
    "investigation_notes": "Called the customer",
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
    "text": "My card was charged twice.",
    "transaction_ref": "ORDER-1188",
    "url": "https://shop.example/tapgate",
}

#: Path parameter examples by the preceding path segment, unless it is an ID noun in the plural.
_PATH_EXAMPLES: Final = {
    "account-rules": "1",
    "balance": ids.encode(ids.SUBSCRIBER, _EXAMPLE_ID),
    "cards": "TAP-000001",
    "docs": "swagger-ui.css",
    "deliveries": ids.encode(ids.DELIVERY, _EXAMPLE_ID),
    "requests": ids.encode(ids.SUPPORT_REQUEST, _EXAMPLE_ID),
    "payments": IdempotencyKeyRule.example,
    "users": ids.encode(ids.ADMIN, _EXAMPLE_ID),
}


_AMOUNT_PATTERN: Final = re.compile(r"[0-9]+\.[0-9]{2}")
_LATER_AT: Final = "2026-01-31T12:00:00.000Z"
_SECRET: Final = "returned only once"  # noqa: S105 - an example

#: Fields that are null in examples if they are nullable.
_NULL_FIELDS: Final = frozenset(
    {
        "balance_after", "direction", "error_code", "expires_at", "failure_code", "first_broken",
        "kyc_pending_since", "last_status", "next_cursor", "original", "original_transaction_id",
        "parent_agent_id", "parent_subscriber_id", "pin_locked_until", "reason",
        "investigation_notes", "resolution_notes", "resolved_at", "resolved_by", "response",
        "status_reason", "suspend_reason", "window_seconds",
    }
)  # fmt: skip
#: Fields omitted from examples because only some responses have them.
_ABSENT_FIELDS: Final = frozenset(
    {
        "masked", "failure_details", "DisclosedCard.restricted",
        "StatementRecord.statement_url", "StatementRecord.expires_at",
    }
)  # fmt: skip

_EXAMPLES_BY_NAME: Final[dict[str, Any]] = {
    "allowed_ips": ["203.0.113.0/24"],
    "approval_code": "A1B2C3",
    "assignee": ids.encode(ids.ADMIN, _EXAMPLE_ID),
    "assignee_name": "Ada Cole",
    "as_of": _LATER_AT,
    "balance": "1250.00",
    "card_serial": "TAP-000001",
    "channel": "pos",
    "credit": "0.00",
    "date": "2026-01-31",
    "date_of_birth": "1990-01-31",
    "debit": "500.00",
    "changes": {"status": ["ACTIVE", "BLOCKED"]},
    "actor": {"type": "admin", "id": ids.encode(ids.ADMIN, _EXAMPLE_ID), "name": "Ada Cole"},
    "email": "aminata@example.com",
    "fee_amount": "5.00",
    "fee_refunded": "1.00",
    "fees": "5.00",
    "from": "2026-01-01",
    "to": "2026-01-31",
    "held": "0.00",
    "hmac_secret": _SECRET,
    "holder_name": "Aminata Kamara",
    "ip": "203.0.113.7",
    "language": "en",
    "metadata": {"order": "A-17"},
    "phone_number": "+23276123456",
    "request_id": IdempotencyKeyRule.example,
    "serial": "TAP-000001",
    "template": "verification_code",
    "timezone": "Africa/Freetown",
    "token": _SECRET,
    "total": "505.00",
    "version": VERSION,
}

#: Examples by struct and field, for names whose text_type depends on the struct.
_EXAMPLES_BY_FIELD: Final[dict[str, Any]] = {
    **dict.fromkeys(
        (f"TimelineItem.{name}" for name in ("channel", "input", "replies")), None
    ),  # of chat turns; the example is a transaction
    "LoggedRequestDetails.query": None,
    "LoggedRequestDetails.request_body": None,
    "LoggedRequestDetails.response_body": {"serial": "TAP-000001", "status": "ACTIVE"},
    "Admin.email": "ada@example.com",
    "Admin.name": "Ada Cole",
    "CardRecord.daily_limit": None,
    "CardRecord.spent_today": None,
    "DisclosedCard.daily_limit": None,
    "DisclosedCard.spent_today": None,
    "Me.email": "ada@example.com",
    "Me.name": "Ada Cole",
    "NewSupportMessage.message_id": "chat:7251",
    "TransactionRecord.memo": None,
    "TransactionRecord.to": {
        "type": "processor",
        "id": ids.encode(ids.PROCESSOR, _EXAMPLE_ID),
        "name": "Kamara Stores",
    },
}
_TRUE_FIELDS: Final = ("allowed", "healthy", "holds", "is_active", "valid", "verified")


def build_example(kind: Any, name: str = "") -> Any:
    """Return a valid example value for a request type."""
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
        return _get_text_example(name) or rule.example
    return True if bare is bool else 1.5 if rule is None else rule.example


def get_path_example(path: str, name: str) -> str:
    """Return an example for the path parameter `{name}`, or the name if there is none."""
    segment = path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
    is_id = name == "id" or name.endswith("_id")
    found = _build_id_example(segment.removesuffix("s")) if is_id else None
    return _PATH_EXAMPLES.get(segment) or found or name


def _get_declared_example(kind: Any) -> Any:
    """Return the example that a field declares with `Example`, or None."""
    if get_origin(kind) is Annotated:
        notes = get_args(kind)[1:]
        return next((note.value for note in notes if isinstance(note, Example)), None)
    if get_origin(kind) not in (Union, UnionType):
        return None
    choices = [_get_declared_example(choice) for choice in get_args(kind)]
    return next((choice for choice in choices if choice is not None), None)


def _get_text_example(name: str) -> str | None:
    """Return the example for a text field, or None for an unknown name."""
    if name in _TEXT_EXAMPLES or not name.endswith("_id"):
        return _TEXT_EXAMPLES.get(name)
    return _build_id_example(name.removesuffix("_id"), second=name.startswith("to_"))


def _build_id_example(noun: str, *, second: bool = False) -> str | None:
    """Return an example ID for a noun such as `api_key`, or None for an unknown noun."""
    prefix = _ID_PREFIXES.get(re.split("[-_]", noun)[-1])
    return None if prefix is None else ids.encode(prefix, _EXAMPLE_ID + second)


def build_response_example(kind: Any, owner: str = "", name: str = "") -> Any:
    """Return an example for a response type, or for the field `name` in the struct `owner`."""
    if f"{owner}.{name}" in _EXAMPLES_BY_FIELD:
        return _EXAMPLES_BY_FIELD[f"{owner}.{name}"]
    declared = _get_declared_example(kind)
    if declared is None and name in _NULL_FIELDS and NoneType in get_args(kind):
        return None
    bare = next(iter_union_members(kind))
    if get_origin(bare) is Annotated:
        bare = get_args(bare)[0]
    origin = get_origin(bare) or bare
    example = declared or _EXAMPLES_BY_NAME.get(name) or _find_id_example(owner, name)
    if isinstance(origin, type) and isinstance(example, str if is_enum(origin) else origin):
        return _format_amount(owner, example)
    struct = get_struct(bare)
    if struct is not None:
        return _build_object(bare, struct.__name__)
    if origin is list:
        return [build_response_example(get_args(bare)[0], owner, name)]
    return _build_scalar(kind, bare, owner, name)


def _build_scalar(kind: Any, bare: Any, owner: str, name: str) -> Any:
    rule, text_type = next(iter_rules(kind), None), find_text_type(kind)
    if rule is not None:
        return rule.example
    if text_type is not None and text_type.example is not None:
        return _format_amount(owner, text_type.example)
    return _build_default(bare, name)


def _build_object(kind: Any, owner: str) -> dict[str, Any]:
    return {
        field.encode_name: build_response_example(field.type, owner, field.encode_name)
        if field.default in (msgspec.NODEFAULT, msgspec.UNSET, None)
        else field.default
        for field in msgspec.structs.fields(kind)
        if _ABSENT_FIELDS.isdisjoint((field.encode_name, f"{owner}.{field.encode_name}"))
    }


def _find_id_example(owner: str, name: str) -> str | None:
    if name != "id":
        return _get_text_example(name) if name.endswith("_id") else None
    words = re.findall("[A-Z][a-z]+", owner.removesuffix("Record").removesuffix("WithSecret"))
    return _build_id_example(words[-1].lower()) if words else None


def _format_amount(owner: str, value: Any) -> Any:
    """Format amounts in receipts and card checks for display, with the currency."""
    is_formatted = owner.endswith("Receipt") or owner == "VerifyCardResponse"
    if is_formatted and _AMOUNT_PATTERN.fullmatch(str(value)):
        return money.format_money(money.parse(value, "SLE"), "SLE")
    return value


def _build_default(kind: Any, name: str) -> Any:
    if kind is bool:
        return name in _TRUE_FIELDS
    if kind in (int, float):
        return kind(1)
    if kind is not str:
        return {}
    return _get_text_example(name) or GENERIC_TEXT
