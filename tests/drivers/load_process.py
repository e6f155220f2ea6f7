"""Separate ledger process that submits planned commands.

`python load_process.py` reads the plan as JSON from standard input. It writes JSON lines: first
`ready`, then one line per outcome as it arrives, and finally the number of retried batches.
"""

import asyncio
import random
import sys
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from tapgate.core.id_generator import IdGenerator
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Party, ScopedIdempotencyKey
from tapgate.ledger.engine.group_commit import Ledger, connect_ledger
from tapgate.ledger.pins.pin_lockout import PinState
from tapgate.runtime.store import database as database_module
from tapgate.runtime.store.signals import Signals
from tapgate_client.clock import system_clock
from tapgate_client.errors import ApiError


class LoadPlan(msgspec.Struct, kw_only=True):
    url: str
    slot: int
    seed: int
    wallets: list[int]
    merchants: list[int]
    agents: list[int]
    cards: list[str]
    command_count: int
    max_concurrency: int = 50
    #: If set, every command is the same request with this idempotency key.
    shared_request_id: str | None = None
    pin: str | None = None


def is_correct_pin(state: PinState, pin: str) -> bool:
    return state.verifier == pin.encode()


def build_random_command(plan: LoadPlan, rng: random.Random, number: int) -> Command:
    wallet = commands.subscriber_party(rng.choice(plan.wallets))
    payer: Party = wallet
    if plan.shared_request_id is not None or plan.pin is not None:
        parties = (
            commands.subscriber_party(plan.wallets[0]),
            commands.subscriber_party(plan.wallets[1]),
        )
        return build_command(plan, chart.TRANSFER, parties, 1_00, plan.shared_request_id)
    kind = rng.choice(
        [
            chart.POS_PAYMENT,
            chart.POS_PAYMENT,
            chart.TRANSFER_P2P,
            chart.AGENT_CASHIN,
            chart.AGENT_CASHOUT,
            chart.PROCESSOR_TRANSFER,
        ]
    )
    if kind == chart.POS_PAYMENT:
        payer = commands.card_party(rng.choice(plan.cards))
        payee = commands.processor_party(rng.choice(plan.merchants))
    elif kind == chart.TRANSFER_P2P:
        payee = commands.card_party(rng.choice(plan.cards))
    elif kind == chart.AGENT_CASHIN:
        payer, payee = commands.agent_party(rng.choice(plan.agents)), wallet
    elif kind == chart.AGENT_CASHOUT:
        payee = commands.agent_party(rng.choice(plan.agents))
    else:
        payer, payee = commands.processor_party(rng.choice(plan.merchants)), wallet
    amount = rng.randrange(1, 20_00)
    # About one in five commands uses one of 50 idempotency keys that all processes share.
    request_id = f"{plan.seed}-{number}" if rng.random() < 0.8 else f"shared-{number % 50}"
    return build_command(plan, kind, (payer, payee), amount, request_id)


def build_command(
    plan: LoadPlan, kind: str, parties: tuple[Party, Party], amount: int, request_id: str | None
) -> Command:
    payer, payee = parties
    fingerprint = repr((kind, parties, amount)).encode()
    return Command(
        type=kind,
        channel="api",
        payer=payer,
        payee=payee,
        amount=amount,
        payer_pin=plan.pin,
        idempotency_key=ScopedIdempotencyKey("load", request_id, fingerprint)
        if request_id is not None
        else None,
    )


async def main(plan: LoadPlan) -> None:
    # As in conftest.py: a loaded machine may stall for some seconds.
    database_module.DATABASE_TIMEOUT_SECONDS = 30.0
    signals = Signals(plan.url)
    await signals.start()
    ledger = Ledger(
        await connect_ledger(plan.url),
        signals,
        currency="SLE",
        timezone=ZoneInfo("UTC"),
        clock=system_clock,
        new_id=IdGenerator(plan.slot),
        is_correct_pin=is_correct_pin,
    ).start()
    rng = random.Random(plan.seed)
    commands = [build_random_command(plan, rng, number) for number in range(plan.command_count)]
    semaphore = asyncio.Semaphore(plan.max_concurrency)
    write_line({"ready": True})

    async def submit(command: Command) -> None:
        async with semaphore:
            try:
                outcome = await ledger.submit(command)
            except ApiError as error:
                write_line({"lost": str(error.code)})
                return
        write_line(
            {
                "request": command.idempotency_key and command.idempotency_key.request_id,
                "transaction": outcome.result and outcome.result.transaction_id,
                "code": outcome.code,
                "replayed": outcome.replayed,
            }
        )

    await asyncio.gather(*(submit(command) for command in commands))
    write_line({"retries": ledger.batch_stats.retries})
    await ledger.stop()
    await signals.stop()


def write_line(fields: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(fields) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.stdin.buffer.read(), type=LoadPlan)))
