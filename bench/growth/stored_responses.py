"""Stored responses for transactions generated in SQL.

The ledger's own encoder writes a template with placeholder numbers that are easy to locate. SQL
overlays the placeholders with the numbers of each transaction.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tapgate.ledger.commands import TransactionResult, encode_result

#: Encoded with the full 8 or 4 bytes, so every value fits. No encoding contains another.
_PLACEHOLDERS: Final = {
    "transaction_id": 0x7D7D7D7D7D7D7D7D,
    "amount": 0x7E010201,
    "fee": 0x7E010202,
    "payer_available": 0x7E010203,
    "payee_available": 0x7E010204,
}


def encode_template(result: TransactionResult, *placeholder_fields: str, **values: Any) -> bytes:
    """Encode a response with placeholders in some fields and the given values in others."""
    placeholders = {field: _PLACEHOLDERS[field] for field in placeholder_fields}
    return encode_result(msgspec.structs.replace(result, **placeholders, **values))


def render_overlay_sql(column: str, example: bytes, values: Mapping[str, str]) -> str:
    """Return SQL that overlays the template's placeholders in `column` with values.

    All templates in the column must have their placeholders at the same offsets as `example`.
    """
    sql = column
    for field, value in values.items():
        placeholder, encoded_value = _get_placeholder(field, value)
        position = example.index(placeholder) + 1
        sql = f"overlay({sql} placing {encoded_value} from {position} for {len(placeholder)})"
    return sql


def _get_placeholder(field: str, value: str) -> tuple[bytes, str]:
    if field == "transaction_id":
        return _PLACEHOLDERS[field].to_bytes(8), f"int8send({value})"
    return _PLACEHOLDERS[field].to_bytes(4), f"int4send(({value})::int)"
