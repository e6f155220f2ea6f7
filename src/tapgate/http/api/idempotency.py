"""Idempotency keys in requests that move money, with the caller's scope and a fingerprint."""

import hashlib
from typing import Any, Final

import msgspec

from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.fields import IdempotencyKeyRule, InvalidValueError

_HEADER_NAME: Final = "Idempotency-Key"
_rule = IdempotencyKeyRule()

#: Fields outside the fingerprint: the idempotency key, PINs, the card proof, and the currency,
#: which cannot vary.
_FINGERPRINT_EXCLUDED_FIELDS: Final = ("request_id", "pin", "agent_pin", "card_proof", "currency")

#: Fields added since the first release. Without a value they are outside the fingerprint, so that
#: requests stored before still replay.
_FINGERPRINT_ADDED_FIELDS: Final = ("recipient_phone_number", "reference")

_fields_encoder = msgspec.json.Encoder(order="deterministic")


def require_consistent_idempotency_key(request: RequestContext, body: Any) -> None:
    header, request_id = request.idempotency_key, body.request_id
    if header is not None and request_id is not None and header != request_id:
        raise _build_invalid_key_error("must equal the Idempotency-Key header")


def require_idempotency_key(request: RequestContext, body: Any) -> None:
    """Raise an error if the request has no idempotency key."""
    if body.request_id is None and request.idempotency_key is None:
        raise _build_invalid_key_error("is required in the body or in the Idempotency-Key header")


def build_idempotency_key(request: GuardedRequest, body: Any) -> ScopedIdempotencyKey | None:
    """Return the idempotency key from the header or the body, or None if there is none."""
    request_id: str | None = body.request_id
    header = request.idempotency_key
    if header is not None:
        try:
            request_id = _rule.check(header)
        except InvalidValueError as error:
            raise invalid_field(_HEADER_NAME, error.problems[""]) from None
    if request_id is None:
        return None
    caller = request.principal
    return ScopedIdempotencyKey(
        caller.idempotency_scope,
        request_id,
        calculate_fingerprint(request.path, body),
        caller.lookup_scopes,
    )


def calculate_fingerprint(path: str, body: Any) -> bytes:
    """Return a hash that distinguishes a replay from another request with the same key."""
    fields = msgspec.structs.asdict(body)
    for name in _FINGERPRINT_EXCLUDED_FIELDS:
        fields.pop(name, None)
    for name in _FINGERPRINT_ADDED_FIELDS:
        if name in fields and fields[name] is None:
            del fields[name]
    encoded_path = path.removeprefix("/api/v1").encode()
    encoded_fields = _fields_encoder.encode(fields)
    return hashlib.blake2b(encoded_path + b"\n" + encoded_fields, digest_size=16).digest()


def _build_invalid_key_error(message: str) -> ApiError:
    return invalid_field("request_id", message, Code.INVALID_REQUEST)
