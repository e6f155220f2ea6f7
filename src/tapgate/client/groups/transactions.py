"""Read operations on transactions."""

from typing import Any

from tapgate.client.encoding import DateTimeLike, encode_optional_datetime, omit_none
from tapgate.client.operation import (
    ListOperation,
    M,
    Operation,
    OperationGroup,
    build_get,
    operation,
)
from tapgate.client.pagination import build_list, list_operation
from tapgate.client.records.base import File
from tapgate.client.records.transactions import Transaction, TransactionChain, TransactionEntries

_COLLECTION_PATH = "/api/v1/transactions"
_RESOURCE_PATH = f"{_COLLECTION_PATH}/{{id}}"


class Transactions(OperationGroup[M]):
    @list_operation
    def list(
        self,
        *,
        user_id: str | None = None,
        card_serial: str | None = None,
        type: str | None = None,
        status: str | None = None,
        failure_code: str | None = None,
        from_: DateTimeLike | None = None,
        to: DateTimeLike | None = None,
        limit: int | None = None,
    ) -> ListOperation[Transaction]:
        """List transactions, newest first. `limit` is the page size."""
        query = build_filters(user_id, card_serial, type, status, failure_code, from_, to, limit)
        return build_list(_COLLECTION_PATH, Transaction, query)

    @operation
    def export(
        self,
        *,
        user_id: str | None = None,
        card_serial: str | None = None,
        type: str | None = None,
        status: str | None = None,
        failure_code: str | None = None,
        from_: DateTimeLike | None = None,
        to: DateTimeLike | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Operation[File]:
        """Export transactions as CSV, newest first.

        `limit` is the number of transactions per file, at most 50,000. If more exist, the file has
        a `next_cursor` to continue with.
        """
        query = build_filters(user_id, card_serial, type, status, failure_code, from_, to, limit)
        return build_get(f"{_COLLECTION_PATH}/export", File, query=query | omit_none(cursor=cursor))

    @operation
    def get(self, id: str) -> Operation[Transaction]:
        return build_get(_RESOURCE_PATH, Transaction, id=id)

    @operation
    def get_entries(self, id: str) -> Operation[TransactionEntries]:
        """Return the ledger entries of a transaction. Admins only."""
        return build_get(f"{_RESOURCE_PATH}/entries", TransactionEntries, id=id)

    @operation
    def get_chain(self, id: str) -> Operation[TransactionChain]:
        """Return the related payment or refunds, and a summary of replays. Admins only."""
        return build_get(f"{_RESOURCE_PATH}/chain", TransactionChain, id=id)


def build_filters(
    user_id: str | None,
    card_serial: str | None,
    type: str | None,
    status: str | None,
    failure_code: str | None,
    from_: DateTimeLike | None,
    to: DateTimeLike | None,
    limit: int | None,
) -> dict[str, Any]:
    """Build the query parameters that filter a list of transactions."""
    return omit_none(
        user_id=user_id,
        card_serial=card_serial,
        type=type,
        status=status,
        failure_code=failure_code,
        from_=encode_optional_datetime(from_),
        to=encode_optional_datetime(to),
        limit=limit,
    )
