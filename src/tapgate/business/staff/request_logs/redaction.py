"""Redaction of logged requests: a value is kept only if its field is listed and has its format.

Clients also send secrets in the wrong field. So a listed field is kept only if it cannot be a PIN,
a code or a phone number, and everything else is masked. A field's name is kept only if a schema
declares it, because a misplaced secret can also be a name.
"""

import re
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from tapgate.events.audit.entry import MASK
from tapgate_client import schemas

MAX_BODY_BYTES: Final = 8 * 1024
_MAX_DEPTH: Final = 6
_MAX_ITEMS: Final = 100
_MAX_PARAMETERS: Final = 20

#: Fields with objects or lists, whose own fields are redacted.
_CONTAINERS: Final = frozenset(
    """agent alert approval by_type card data details entries errors fees from limits partner payer
    processor reasons recipient refunds required rows sender subscriber terminal to transaction
    transactions""".split()
)
#: Fields with amounts and other numbers.
NUMBERS: Final = frozenset(
    """amount burst cards_count commission_earned count daily_limit daily_remaining fee_amount
    fee_refunded grace_seconds limit max_balance max_child_cards max_transaction minimum_amount
    monthly_limit monthly_remaining no_pin_limit occurrences per_transaction proof_required_above
    rate rate_limit refundable_amount refunded_amount remaining row total version""".split()
)
#: Fields with codes, IDs, times and other short words.
WORDS: Final = frozenset(
    """account_id agent_id agent_type alert_id alert_type api_key_id approval_id as_of at
    authenticity card_serial card_type category channel code commission_tier completed_at created_at
    currency cursor date decision direction document_id document_type error_code event expires_at
    expires_in failure_code fee_payer format from from_account_id from_agent_id from_date
    generated_at has_more id id_type is_active keyset_id kind kyc_level kyc_status language
    linked_at masked merchant_id mode next_cursor original_transaction_id parent_agent_id
    parent_subscriber_id partner_id partner_reference pin_locked_until pin_required processor_id
    reasons recipient_card_serial request_id required resets_at restricted retry_after role rule_id
    scope scopes serial severity sort status status_changed_at subject subscriber_id suspended
    terminal_id tier to to_account_id to_agent_id to_date transaction_id transaction_ref
    transaction_status transaction_type transaction_types type updated_at user_id valid
    window_seconds""".split()
)
#: Texts of error responses, which never repeat a submitted value.
_ERROR_TEXTS: Final = frozenset({"error", "message"})

#: Between the names of nested fields in the details of an error, such as `data[0].amount`.
_PATH_SEPARATOR: Final = re.compile(r"\[[0-9]{1,4}\]|\.")
#: Reported in the details of an error instead of a field.
_WHOLE_BODY: Final = "body"
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,4})?")
#: A date, or a word that is shorter than a credential and contains a letter or a colon. It cannot
#: be a PIN, a code, a phone number or a card number, with or without separators.
_WORD: Final = re.compile(
    r"20[0-9]{2}-[01][0-9]-[0-3][0-9]|(?![0-9._-]+\Z)[A-Za-z0-9][A-Za-z0-9._:-]{0,39}"
)


@cache
def get_declared_names() -> frozenset[str]:
    """Return the names of all fields in requests and responses."""
    names, pending = set[str](), list(msgspec.Struct.__subclasses__())
    while pending:
        struct = pending.pop()
        pending += struct.__subclasses__()
        if struct.__module__.startswith(schemas.__name__):
            names.update(struct.__struct_encode_fields__)
    return frozenset(names | WORDS | NUMBERS | _CONTAINERS | _ERROR_TEXTS | {_WHOLE_BODY})


def _is_declared(path: str) -> bool:
    names = filter(None, _PATH_SEPARATOR.split(path))
    return all(name in get_declared_names() for name in names)


def redact_body(body: bytes, *, is_error: bool = False) -> str | None:
    """Return a JSON body without secrets and personal data.

    Return None if it is empty, too large or not a JSON object.
    """
    if not body or len(body) > MAX_BODY_BYTES:
        return None
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    redacted = _redact_object(value, is_error=is_error)
    if is_error and not all(map(_is_declared, _list_invalid_fields(value))):
        redacted["message"] = MASK  # it names the invalid fields
    return msgspec.json.encode(redacted).decode()


def _list_invalid_fields(error: dict[str, Any]) -> list[str]:
    details = error.get("details")
    fields = details.get("fields") if isinstance(details, dict) else None
    return list(fields) if isinstance(fields, dict) else []


def redact_query(query: bytes) -> str | None:
    """Return the parameters of a query as a JSON object, or None if there are none."""
    if not query:
        return None
    try:
        parameters = dict(
            parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
        )
    except ValueError:
        return None
    return msgspec.json.encode(_redact_object(parameters)).decode() if parameters else None


def redact_path(path: str, template: str) -> str:
    """Return a path whose parameters are masked unless they are IDs or other words."""
    segments = zip(path.split("/"), template.split("/"), strict=True)
    return "/".join(
        value if not part.startswith("{") or _WORD.fullmatch(value) else MASK
        for value, part in segments
    )


def _redact_object(
    value: dict[str, Any], depth: int = 0, *, is_error: bool = False
) -> dict[str, Any]:
    return {
        # The names in an error are the gateway's own, except those of invalid fields.
        (name if is_error or name in get_declared_names() else MASK): _redact(
            name, item, depth + 1, is_error=is_error
        )
        for name, item in list(value.items())[:_MAX_ITEMS]
    }


def _redact(name: str, value: Any, depth: int, *, is_error: bool = False) -> Any:
    if isinstance(value, dict):
        if is_error and name == "fields":
            return {field: text for field, text in value.items() if _is_declared(field)}
        is_kept = name in _CONTAINERS and depth <= _MAX_DEPTH
        return _redact_object(value, depth, is_error=is_error) if is_kept else MASK
    if isinstance(value, list):
        is_kept = (name in _CONTAINERS or name in WORDS) and depth <= _MAX_DEPTH
        if not is_kept:
            return MASK
        return [_redact(name, item, depth + 1, is_error=is_error) for item in value[:_MAX_ITEMS]]
    if is_error and name in _ERROR_TEXTS:
        return value
    return value if _is_harmless(name, value) else MASK


def _is_harmless(name: str, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if name in NUMBERS:
        return _NUMBER.fullmatch(str(value)) is not None
    return name in WORDS and isinstance(value, str) and _WORD.fullmatch(value) is not None
