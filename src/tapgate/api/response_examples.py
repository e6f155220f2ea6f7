"""OpenAPI examples of success responses, consistent with the request examples."""

import re
from types import NoneType
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

from tapgate import VERSION, ids, money
from tapgate.api.examples import build_id_example, get_text_example
from tapgate.http.json_schema import get_struct
from tapgate.schemas.fields import IdempotencyKeyRule, Rule

_EXAMPLE_ID: Final = 1 << 58
_AMOUNT_PATTERN: Final = re.compile(r"[0-9]+\.[0-9]{2}")
_CREATED_AT: Final = "2026-01-31T09:15:00.000Z"
_LATER_AT: Final = "2026-01-31T12:00:00.000Z"
_HASH: Final = "9f86d081" * 8
_SECRET: Final = "returned only once"  # noqa: S105 - an example

#: Fields that are null in examples if they are nullable.
_NULL_FIELDS: Final = frozenset(
    {
        "balance_after", "direction", "error_code", "expires_at", "failure_code", "first_broken",
        "last_status", "next_cursor", "original", "original_transaction_id", "parent_agent_id",
        "parent_subscriber_id", "pin_locked_until", "reason", "resolution_notes", "resolved_at",
        "resolved_by", "response", "status_reason", "suspend_reason", "window_seconds",
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
    "as_of": _LATER_AT,
    "attempts": 1,
    "available": "1250.00",
    "balance": "1250.00",
    "card_serial": "TAP-000001",
    "cards_count": 1,
    "channel": "pos",
    "clearing": "0.00",
    "closing_balance": "1250.00",
    "commission_earned": "5.00",
    "completed_at": _CREATED_AT,
    "credit": "0.00",
    "currency": "SLE",
    "date": "2026-01-31",
    "date_of_birth": "1990-01-31",
    "debit": "500.00",
    "details": {},
    "changes": {"status": ["ACTIVE", "BLOCKED"]},
    "actor": {"type": "admin", "id": ids.encode(ids.ADMIN, _EXAMPLE_ID), "name": "Ada Cole"},
    "email": "aminata@example.com",
    "expires_in": 900,
    "fee_amount": "5.00",
    "fees": "5.00",
    "from": "2026-01-01",
    "to": "2026-01-31",
    "hash": _HASH,
    "held": "0.00",
    "hmac_secret": _SECRET,
    "holder_name": "Aminata Kamara",
    "ip": "203.0.113.7",
    "key": _SECRET,
    "language": "en",
    "mac_address": "04:A2:24:5B:6C:80:90",
    "metadata": {"order": "A-17"},
    "next_cursor": ids.encode("cur_", 1 << 60),
    "phone_number": "+23276123456",
    "prefix": "svc_live_aB3k",
    "previous_hash": _HASH,
    "refunded_amount": "0.00",
    "request_id": IdempotencyKeyRule.example,
    "secret": _SECRET,
    "serial": "TAP-000001",
    "service": "tapgate",
    "template": "verification_code",
    "timezone": "Africa/Freetown",
    "token": _SECRET,
    "total": "505.00",
    "total_debits": "500.00",
    "version": VERSION,
    "webhook_secret": _SECRET,
}

#: Examples by struct and field, for names whose meaning depends on the struct.
_EXAMPLES_BY_FIELD: Final[dict[str, Any]] = {
    "Admin.email": "ada@example.com",
    "Admin.name": "Ada Cole",
    "CardRecord.daily_limit": None,
    "CardRecord.spent_today": None,
    "CardRecord.status": "ACTIVE",
    "DisclosedCard.daily_limit": None,
    "DisclosedCard.spent_today": None,
    "DisclosedCard.status": "LOST",
    "DisclosedCard.status_reason": "lost",
    "DisclosedSubscriber.status": "BLOCKED",
    "DisclosedSubscriber.status_reason": "Requested by the customer",
    "AuditEntry.resource_id": ids.encode(ids.SUBSCRIBER, _EXAMPLE_ID),
    "StatementHolder.name": "Aminata Kamara",
    "Me.email": "ada@example.com",
    "Me.name": "Ada Cole",
    "Overview.from": "2026-01-31T00:00:00.000Z",
    "Overview.to": _LATER_AT,
    "PartyRecord.name": "Aminata Kamara",
    "RuleRecord.name": "Large payments",
    "RuleRecord.threshold": "500.00",
    "TerminalRecord.name": "Till 1",
    "TransactionRecord.memo": None,
    "TransactionRecord.to": {
        "type": "processor",
        "id": ids.encode(ids.PROCESSOR, _EXAMPLE_ID),
        "name": "Kamara Stores",
    },
    "TransactionRecord.type": "pos_payment",
}


def build_response_example(kind: Any, owner: str = "", name: str = "") -> Any:
    """Return an example of a response type, or of the field `name` of the struct `owner`."""
    members = [member for member in _list_union_members(kind) if member is not msgspec.UnsetType]
    bare = next(member for member in members if member is not NoneType)
    nullable = NoneType in members
    notes = get_args(bare)[1:] if get_origin(bare) is Annotated else ()
    if notes:
        bare = get_args(bare)[0]
    if f"{owner}.{name}" in _EXAMPLES_BY_FIELD:
        return _EXAMPLES_BY_FIELD[f"{owner}.{name}"]
    if nullable and name in _NULL_FIELDS:
        return None
    example = _EXAMPLES_BY_NAME.get(name) or _find_id_example(owner, name)
    if example is not None and _is_instance_of(example, bare):
        return _format_amount(owner, example)
    struct = get_struct(bare)
    if struct is not None:
        return _build_object(bare, struct.__name__)
    if get_origin(bare) is list:
        return [build_response_example(get_args(bare)[0], owner, name)]
    rule = next((note for note in notes if isinstance(note, Rule)), None)
    return rule.example if rule is not None else _format_amount(owner, _build_default(bare, name))


def _find_id_example(owner: str, name: str) -> str | None:
    if name != "id":
        return get_text_example(name) if name.endswith("_id") else None
    words = re.findall("[A-Z][a-z]+", owner.removesuffix("Record").removesuffix("WithSecret"))
    return build_id_example(words[-1].lower()) if words else None


def _format_amount(owner: str, value: Any) -> Any:
    """Format amounts of receipts and card checks for display, with the currency."""
    if (owner.endswith("Receipt") or owner == "VerifyCardResponse") and _AMOUNT_PATTERN.fullmatch(
        str(value)
    ):
        return f"{money.format_money(money.parse(value, 'SLE'), 'SLE')}"
    return value


def _build_object(kind: Any, owner: str) -> dict[str, Any]:
    example = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in _ABSENT_FIELDS or f"{owner}.{field.encode_name}" in _ABSENT_FIELDS:
            continue
        default = field.default
        if default in (msgspec.NODEFAULT, msgspec.UNSET, None):
            example[field.encode_name] = build_response_example(
                field.type, owner, field.encode_name
            )
        else:
            example[field.encode_name] = default
    return example


def _list_union_members(kind: Any) -> tuple[Any, ...]:
    is_single = get_origin(kind) in (None, Annotated, list, dict) or get_struct(kind) is not None
    return (kind,) if is_single else get_args(kind)


def _is_instance_of(value: Any, kind: Any) -> bool:
    expected = get_origin(kind) or kind
    return isinstance(expected, type) and isinstance(value, expected)


def _build_default(kind: Any, name: str) -> Any:
    if kind is bool:
        return name in ("allowed", "healthy", "holds", "is_active", "valid", "verified")
    if kind in (int, float):
        return kind(1)
    if kind is not str:
        return {}
    if name.endswith(("_at", "_until", "start")):
        return _CREATED_AT
    if name.endswith(("balance", "amount", "limit")) or name in _AMOUNT_FIELDS:
        return "500.00"
    return get_text_example(name) or "Done"


_AMOUNT_FIELDS: Final = frozenset(
    {
        "used", "remaining", "max_transaction", "daily", "monthly", "per_transaction", "wallets",
        "agent_floats", "agent_commissions", "settlements", "under_review", "spent_today",
        "total_credits",
    }
)  # fmt: skip
