"""Request body size limits, computed from each endpoint's declared fields.

Bodies are parsed on the event loop, so a limit above the fields' maximum size only helps an
attacker. Limits allow for fully escaped text: in JSON, an escaped character takes 6 bytes, or 12
bytes if it is beyond U+FFFF.
"""

from typing import Any, Final, get_args, get_origin

import msgspec

from tapgate.http.field_checks import get_rule_and_type, is_struct

KIBIBYTE: Final = 1024
#: The limit of most endpoints. Larger computed limits are multiples of it.
DEFAULT_BODY_BYTES: Final = 16 * KIBIBYTE
MAX_JSON_BYTES: Final = 1024 * KIBIBYTE

#: Allowance for whitespace and for unknown fields, which the decoder ignores.
_SLACK_BYTES: Final = 2 * KIBIBYTE
_FIELD_OVERHEAD_BYTES: Final = 16  # quotes, colon, comma and indentation
_MAX_NUMBER_BYTES: Final = 32
#: Assumed maximum length for a list without a length rule.
_DEFAULT_MAX_ITEMS: Final = 100


def compute_body_limit(kind: Any) -> int:
    """Return a multiple of the default limit that fits the type, at most `MAX_JSON_BYTES`."""
    if not is_struct(kind):
        return DEFAULT_BODY_BYTES
    multiple = -(-(_compute_max_json_bytes(kind) + _SLACK_BYTES) // DEFAULT_BODY_BYTES)
    return min(multiple * DEFAULT_BODY_BYTES, MAX_JSON_BYTES)


def _compute_max_json_bytes(kind: Any) -> int:
    rule, bare = get_rule_and_type(kind)
    if is_struct(bare):
        fields = msgspec.structs.fields(bare)
        return sum(
            len(item.encode_name) + _FIELD_OVERHEAD_BYTES + _compute_max_json_bytes(item.type)
            for item in fields
        )
    if get_origin(bare) is list:
        items = getattr(rule, "maximum", _DEFAULT_MAX_ITEMS)
        return int(items) * (_compute_max_json_bytes(get_args(bare)[0]) + _FIELD_OVERHEAD_BYTES)
    if rule is None or bare is int:
        return _MAX_NUMBER_BYTES
    return rule.max_json_bytes
