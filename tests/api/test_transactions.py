"""Tests of the database transactions that operations receive."""

import pytest

from tapgate.api.services import Services
from tapgate.errors import ApiError, Code
from tapgate.store.database import RaiseAfterCommit

CREATE = "CREATE TABLE probe (id int PRIMARY KEY)"
INSERT = "INSERT INTO probe VALUES (1)"
COUNT = "SELECT count(*) FROM probe"


async def test_callbacks_run_after_the_commit(services: Services) -> None:
    await services.database.execute(CREATE)
    counts = []

    async def count_rows() -> None:
        counts.append(await services.database.fetchval(COUNT))

    async with services.transaction() as tx:
        await tx.execute(INSERT)
        tx.after_commit(count_rows)
    assert counts == [1]


async def test_error_raised_after_the_commit_keeps_the_changes(services: Services) -> None:
    await services.database.execute(CREATE)
    calls = []

    async def record_call() -> None:
        calls.append("after commit")

    with pytest.raises(ApiError) as caught:
        async with services.transaction() as tx:
            await tx.execute(INSERT)
            tx.after_commit(record_call)
            raise RaiseAfterCommit(ApiError(Code.INVALID_PIN))
    assert caught.value.code is Code.INVALID_PIN
    assert await services.database.fetchval(COUNT) == 1
    assert calls == ["after commit"]


async def test_rolled_back_transaction_runs_no_callback(services: Services) -> None:
    await services.database.execute(CREATE)

    async def fail() -> None:
        raise AssertionError

    with pytest.raises(ApiError):
        async with services.transaction() as tx:
            await tx.execute(INSERT)
            tx.after_commit(fail)
            raise ApiError(Code.NOT_FOUND)
    assert await services.database.fetchval(COUNT) == 0
