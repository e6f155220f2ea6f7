"""Limits and rules hold for concurrent transfers in one process and in two processes."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from builders.payments import get_funds, submit_transfer, update_rule
from harness import Harness
from tapgate.gateway import open_services
from tapgate.ledger.verify import verify
from tapgate.settings import Settings

AMOUNT = "10"


@pytest.fixture
async def processes(
    harness: Harness, settings: Settings, database_url: str
) -> AsyncIterator[list[Harness]]:
    """Yield two simulated gateway processes on one database."""
    async with open_services(settings, database_url) as second:
        yield [harness, Harness(second, harness.client)]


async def set_limit(harness: Harness, kind: str) -> str:
    """Set a limit that allows one transfer and return the error code of further transfers."""
    if kind == "count":
        await update_rule(harness, "Daily velocity", threshold=1)
    elif kind == "cumulative":
        # The API cannot change the type of a rule.
        await harness.services.database.execute(
            "UPDATE compliance_rules SET type = 'CUMULATIVE_AMOUNT' WHERE name = 'Daily velocity'"
        )
        await update_rule(harness, "Daily velocity", threshold="19.99", window_seconds=3600)
    else:
        response = await harness.client.put(
            "/api/v1/account-rules/1", json={kind: "19.99"}, auth=await harness.create_admin()
        )
        assert response.status_code == 200, response.text
        return kind.upper() + "_EXCEEDED"
    return "COMPLIANCE_REJECTED"


@pytest.mark.parametrize("kind", ["count", "cumulative", "daily_limit"])
@pytest.mark.parametrize("count", [2, 20])
@pytest.mark.parametrize("gateways", [1, 2])
async def test_limit_for_one_transfer_declines_all_other_concurrent_transfers(
    harness: Harness, processes: list[Harness], kind: str, count: int, gateways: int
) -> None:
    code = await set_limit(harness, kind)
    sender, receiver = (
        await harness.create_subscriber(balance="1000"),
        await harness.create_subscriber(),
    )
    outcomes = await asyncio.gather(
        *(
            submit_transfer(processes[index % gateways], sender["id"], receiver["id"], AMOUNT)
            for index in range(count)
        )
    )
    assert Counter(outcome.code for outcome in outcomes) == {None: 1, code: count - 1}
    assert await get_funds(harness, receiver["id"]) == (10_00, 0)
    async with harness.services.database.connection() as connection:
        assert (await verify(connection)).is_valid
