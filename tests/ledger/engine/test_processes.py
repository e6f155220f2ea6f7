"""Several processes on the same accounts: no duplicates, lost commands, overdrafts or deadlocks."""

from collections import Counter

import msgspec
import pytest

from builders.ledger import PIN, WRONG_PIN, LedgerDriver
from drivers.ledger_processes import (
    build_plan,
    build_second_plan,
    read_responses,
    run_processes,
    start_process,
)
from tapgate.ledger import chart
from tapgate_client.errors import Code


async def test_two_processes_on_the_same_accounts_lose_and_duplicate_nothing(
    ledger: LedgerDriver, database_url: str
) -> None:
    plan = await build_plan(ledger, database_url, command_count=1_500)
    before = await sum_balances(ledger)
    responses = await run_processes(plan, build_second_plan(plan))
    assert len(responses) == 3_000
    assert not [response for response in responses if "lost" in response]
    assert {response["code"] for response in responses} <= {
        None,
        Code.INSUFFICIENT_FUNDS,
        Code.INSUFFICIENT_FLOAT,
        Code.DUPLICATE_REQUEST,
        Code.SELF_TRANSFER,
    }
    # The stored transactions match the reported outcomes: one transaction per request.
    rows = await ledger.database.fetch(
        "SELECT id, request_id FROM transactions WHERE request_id IS NOT NULL"
    )
    reported = {
        response["request"]: response["transaction"]
        for response in responses
        if response["transaction"] is not None
    }
    assert {row["request_id"]: row["id"] for row in rows} == reported
    # Total money is conserved.
    assert await sum_balances(ledger) == before
    # The teardown of the `ledger` fixture verifies balances, limits and overdrafts.


async def sum_balances(ledger: LedgerDriver) -> int:
    holders = await ledger.database.fetchval("SELECT sum(balance) FROM accounts WHERE checked")
    platform_balances = [
        await ledger.get_platform_balance(kind) for kind in chart.PLATFORM_ACCOUNT_KINDS
    ]
    return int(holders) + sum(platform_balances)


async def test_same_request_sent_100_times_by_two_processes_executes_once(
    ledger: LedgerDriver, database_url: str
) -> None:
    plan = await build_plan(ledger, database_url, command_count=50)
    shared_plan = msgspec.structs.replace(plan, shared_request_id="shared")
    responses = await run_processes(shared_plan, build_second_plan(shared_plan))
    assert len(responses) == 100
    assert len({response["transaction"] for response in responses}) == 1
    assert Counter(response["replayed"] for response in responses) == {True: 99, False: 1}
    assert await ledger.get_balance(plan.wallets[0]) == 49_00


async def test_wrong_pins_from_two_processes_share_one_limit_of_three_attempts(
    ledger: LedgerDriver, database_url: str
) -> None:
    plan = await build_plan(ledger, database_url, command_count=25)
    wrong_pin_plan = msgspec.structs.replace(plan, pin=WRONG_PIN)
    responses = await run_processes(wrong_pin_plan, build_second_plan(wrong_pin_plan))
    codes = Counter(response["code"] for response in responses)
    assert codes == {Code.INVALID_PIN: 3, Code.ACCOUNT_LOCKED: 47}
    correct_pin_plan = msgspec.structs.replace(plan, pin=PIN, command_count=1)
    found = [response["code"] for response in await run_processes(correct_pin_plan)]
    assert found == [Code.ACCOUNT_LOCKED]


@pytest.mark.parametrize("acknowledged", [1, 60, 300])
async def test_sigkill_keeps_acknowledged_transactions_and_allows_safe_retries(
    ledger: LedgerDriver, database_url: str, acknowledged: int
) -> None:
    """Acknowledged transactions are stored; retrying the others executes each exactly once."""
    # More commands than the process can finish before it is killed, even on a slow machine.
    plan = await build_plan(ledger, database_url, command_count=20_000)
    process = await start_process(plan)
    assert process.stdout is not None
    responses = [msgspec.json.decode(await process.stdout.readline()) for _ in range(acknowledged)]
    process.kill()
    responses += await read_responses(process)
    assert process.returncode == -9
    rows = await ledger.database.fetch("SELECT id, request_id FROM transactions")
    stored = {row["request_id"]: row["id"] for row in rows if row["request_id"] is not None}
    for response in responses:
        if response.get("transaction") is not None:
            assert stored[response["request"]] == response["transaction"]
    stored_numbers = [
        int(name.removeprefix(f"{plan.seed}-")) for name in stored if "shared" not in name
    ]
    # Resend every command that may be stored, plus some that are not.
    retried = await run_processes(
        msgspec.structs.replace(plan, slot=12, command_count=max(stored_numbers, default=0) + 200)
    )
    replayed = {response["request"] for response in retried if response["replayed"]}
    assert set(stored) <= replayed
    for response in retried:
        if response["transaction"] is not None and response["request"] in stored:
            assert stored[response["request"]] == response["transaction"]
