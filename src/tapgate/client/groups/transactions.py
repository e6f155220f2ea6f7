"""Transactions, looked at."""

from typing import Any

from tapgate.client.operation import Group, Listing, M, Operation, operation, read
from tapgate.client.pages import listed, listing
from tapgate.client.records.base import File
from tapgate.client.records.transactions import Chain, Entries, Transaction
from tapgate.client.values import Moment, given, moment_or_none

_ALL = "/api/v1/transactions"
_ONE = f"{_ALL}/{{id}}"


class Transactions(Group[M]):
    @listing
    def list(
        self,
        *,
        user_id: str | None = None,
        card_serial: str | None = None,
        type: str | None = None,
        status: str | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        limit: int | None = None,
    ) -> Listing[Transaction]:
        """Newest first; `limit` is how many on a page."""
        query = filters(user_id, card_serial, type, status, from_, to, limit)
        return listed(_ALL, Transaction, query)

    @operation
    def export(
        self,
        *,
        user_id: str | None = None,
        card_serial: str | None = None,
        type: str | None = None,
        status: str | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Operation[File]:
        """As CSV, newest first; `limit` is how many in a file, at most 50,000.

        When there are more, the file has the `next_cursor` to go on with.
        """
        query = filters(user_id, card_serial, type, status, from_, to, limit)
        return read(f"{_ALL}/export", File, query=query | given(cursor=cursor))

    @operation
    def get(self, id: str) -> Operation[Transaction]:
        return read(_ONE, Transaction, id=id)

    @operation
    def entries(self, id: str) -> Operation[Entries]:
        """What it moved between which accounts of the books; for admins."""
        return read(f"{_ONE}/entries", Entries, id=id)

    @operation
    def chain(self, id: str) -> Operation[Chain]:
        """What it gives back, its refunds, and how often it was asked for again; for admins."""
        return read(f"{_ONE}/chain", Chain, id=id)


def filters(
    user_id: str | None,
    card_serial: str | None,
    type: str | None,
    status: str | None,
    from_: Moment | None,
    to: Moment | None,
    limit: int | None,
) -> dict[str, Any]:
    """Which transactions a list is to show."""
    return given(
        user_id=user_id,
        card_serial=card_serial,
        type=type,
        status=status,
        from_=moment_or_none(from_),
        to=moment_or_none(to),
        limit=limit,
    )
