"""Processes that load one ledger."""

import asyncio
import sys
from typing import Any

import msgspec

from builders.ledger import LedgerDriver
from drivers import load_process
from drivers.load_process import LoadPlan
from tapgate.ledger.rules.loaded_rules import RULES_CHANGED

Responses = list[dict[str, Any]]


async def start_process(plan: LoadPlan) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        load_process.__file__,
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
