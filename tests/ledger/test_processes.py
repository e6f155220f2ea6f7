"""Several processes on the same accounts: no duplicates, lost commands, overdrafts or deadlocks."""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders.ledger import PIN, WRONG_PIN, LedgerDriver
from ledger.load_process import LoadPlan
from tapgate.ledger import chart
from tapgate.ledger.rules import RULES_CHANGED
from tapgate_client.errors import Code

Responses = list[dict[str, Any]]


async def start_process(plan: LoadPlan) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("load_process.py")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(plan))
    process.stdin.close()
    return process


async def read_responses(process: asyncio.subprocess.Process) -> Responses:
    output, _ = await process.communicate()
    lines = output.splitlines()
    return [msgspec.json.decode(line) for line in lines if not line.startswith(b'{"ready"')]


async def run_processes(*plans: LoadPlan) -> Responses:
    processes = [await start_process(plan) for plan in plans]
    responses_by_process = await asyncio.gather(*(read_responses(process) for process in processes))
    assert [process.returncode for process in processes] == [0] * len(plans)
    for responses in responses_by_process:
        assert responses[-1] == {"retries": 0}, "batches conflicted"
    return [response for responses in responses_by_process for response in responses[:-1]]


async def build_plan(
    ledger: LedgerDriver, url: str, *, command_count: int, wallet: int = 50_00
) -> LoadPlan:
    await ledger.database.execute(
        """UPDATE account_rules SET max_transaction = 1000000000, daily_limit = 1000000000,
                                    monthly_limit = 1000000000"""
    )
    await ledger.database.execute("UPDATE compliance_rules SET status = 'inactive'")
    async with ledger.database.transaction() as tx:
        await ledger.signals.publish(tx, RULES_CHANGED, "")
    wallets = [await ledger.create_subscriber(wallet) for _ in range(6)]
    return LoadPlan(
        url=url,
        slot=10,
        seed=1,
        wallets=wallets,
        merchants=[await ledger.create_processor() for _ in range(3)],
        agents=[await ledger.create_agent(500_00) for _ in range(2)],
        cards=[await ledger.create_card(wallet) for wallet in wallets],
        command_count=command_count,
    )


def build_second_plan(plan: LoadPlan, **changes: Any) -> LoadPlan:
    return msgspec.structs.replace(plan, slot=plan.slot + 1, seed=plan.seed + 1, **changes)


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
    assert [response["code"] for response in await run_processes(correct_pin_plan)] == [
        Code.ACCOUNT_LOCKED
    ]


@pytest.mark.parametrize("acknowledged", [1, 60, 300])
async def test_sigkill_keeps_acknowledged_transactions_and_allows_safe_retries(
    ledger: LedgerDriver, database_url: str, acknowledged: int
) -> None:
    """Acknowledged transactions are stored; a retry of the others executes each exactly once."""
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
    assert all(
        stored.get(response["request"], response["transaction"]) == response["transaction"]
        for response in retried
        if response["transaction"] is not None
    )
