"""Outcomes of earlier payments, looked up by idempotency key."""

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.auth.principals import Principal
from tapgate.ledger import chart
from tapgate.ledger.commands import TransactionResult, decode_result
from tapgate.ledger.idempotency.idempotency_keys import find_by_idempotency_keys
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, require_found

#: Scopes for a processor's terminals: the terminals themselves, and signing keys that were the
#: scope before idempotency keys had owners.
_SELECT_TERMINAL_SCOPES: Final = """
    SELECT id AS terminal_id, NULL AS key_id FROM terminals WHERE processor_id = $1
    UNION ALL
    SELECT terminal_id, id FROM hmac_keys
    WHERE processor_id = $1 AND terminal_id IS NOT NULL AND request_scope <> 'none'"""


class PaymentOutcome(NamedTuple):
    """Current payment outcome: the result, or the error code if it failed."""

    result: TransactionResult
    failure_code: str | None
    metadata: dict[str, Any] | None


async def get_outcome(
    database: Database, caller: Principal, request_id: str, terminal_id: int | None
) -> PaymentOutcome:
    """Return the outcome for a payment that the caller requested, or raise a 404.

    A terminal gets its own payments, and a processor also its terminals' payments. `terminal_id`
    selects the payments at one terminal. The processor's own payment takes precedence.
    """
    own_scopes = caller.lookup_scopes or (caller.idempotency_scope,)
    rows = await _fetch_payments(database, own_scopes, request_id)
    if terminal_id not in (None, caller.terminal_id):
        # A processor can name one of its terminals when it requests a payment itself.
        rows = [row for row in rows if _get_terminal_id(row) == terminal_id]
    if not rows and caller.terminal_id is None:
        scopes = await _list_terminal_scopes(database, caller, terminal_id)
        rows = await _fetch_payments(database, scopes, request_id)
        if terminal_id is None and len(rows) > 1:
            raise ApiError(
                Code.DUPLICATE_REQUEST,
                "Several terminals used this idempotency key. Send terminal_id.",
            )
    row = require_found(rows[0] if rows else None, Code.TRANSACTION_NOT_FOUND)
    result = decode_result(row["answer"])
    if result.status == chart.UNDER_REVIEW and row["status"] != chart.UNDER_REVIEW:
        result = msgspec.structs.replace(result, status=chart.COMPLETED)
    return PaymentOutcome(result, row["failure_code"], (row["context"] or {}).get("metadata"))


def _get_terminal_id(row: Mapping[str, Any]) -> int | None:
    public_id = (row["context"] or {}).get("terminal_id")
    return None if public_id is None else ids.decode(ids.TERMINAL, public_id)


async def _list_terminal_scopes(
    database: Database, caller: Principal, terminal_id: int | None
) -> list[str]:
    return [
        ids.encode(ids.TERMINAL, row["terminal_id"])
        if row["key_id"] is None
        else ids.encode(ids.KEY, row["key_id"])
        for row in await database.fetch(_SELECT_TERMINAL_SCOPES, caller.processor_id)
        if terminal_id in (None, row["terminal_id"])
    ]


async def _fetch_payments(
    database: Database, scopes: Collection[str], request_id: str
) -> list[Any]:
    """Return the payments with an idempotency key, in the order of their scopes."""
    return await database.fetch(
        """SELECT status, failure_code, answer, context FROM transactions
           WHERE id = ANY ($1::bigint[]) AND type = ANY ($2::text[])
           ORDER BY array_position($3::text[], scope)""",
        await find_by_idempotency_keys(database, [(scope, request_id) for scope in scopes]),
        list(chart.PAYMENT_TYPES),
        list(scopes),
    )
