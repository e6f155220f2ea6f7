"""Database transactions as passed to operations."""

from collections.abc import Callable
from typing import Any

import asyncpg

from tapgate.clock import Clock


class Transaction:
    """Open database transaction, with the clock and IDs for the rows that it writes.

    All other attributes are those of the asyncpg connection.
    """

    def __init__(
        self, connection: asyncpg.Connection, clock: Clock, new_id: Callable[[], int]
    ) -> None:
        self._connection = connection
        self.now = clock
        self.new_id = new_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
