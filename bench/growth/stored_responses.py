"""Stored answers for transactions that SQL makes: a real one, in which only the numbers change.

The ledger's own encoder writes a model with numbers that are easy to find again. Where they are,
SQL lays others over them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tapgate.ledger.commands import TransactionResult, encode_result

#: Numbers of full width, so that every other one has room; none is part of another.
_PLACEHOLDERS: Final = {
    "transaction_id": 0x7D7D7D7D7D7D7D7D,
    "amount": 0x7E010201,
    "fee": 0x7E010202,
    "payer_available": 0x7E010203,
    "payee_available": 0x7E010204,
}


def encode_template(answer: TransactionResult, *marked: str, **others: Any) -> bytes:
    """The answer as it is stored, with marks in some fields and other values in others."""
    marks = {field: _PLACEHOLDERS[field] for field in marked}
    return encode_result(msgspec.structs.replace(answer, **marks, **others))


def render_overlay_sql(column: str, example: bytes, values: Mapping[str, str]) -> str:
    """SQL: the model in this column with values laid over its marks. All models in the column have
    them where the example has them."""
    sql = column
    for field, value in values.items():
        mark, send = _get_placeholder(field, value)
        place = example.index(mark) + 1
        sql = f"overlay({sql} placing {send} from {place} for {len(mark)})"
    return sql


def _get_placeholder(field: str, value: str) -> tuple[bytes, str]:
    if field == "transaction_id":
        return _PLACEHOLDERS[field].to_bytes(8), f"int8send({value})"
    return _PLACEHOLDERS[field].to_bytes(4), f"int4send(({value})::int)"
