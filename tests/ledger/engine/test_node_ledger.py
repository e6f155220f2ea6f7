"""A node's workers share one writer: same outcomes, takeover, lost and hanging writers."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, get_args

import msgspec
import pytest
from msgspec import inspect

from builders.ledger import (
    AUDIT,
    WRONG_PIN,
    LedgerDriver,
    build_command,
    build_p2p,
    build_payment,
    build_refund,
    build_request_key,
    remove_limits,
    require_balanced_books,
)
from tapgate.ledger import chart
from tapgate.ledger.card_proofs.proof_verifier import ProofResult
from tapgate.ledger.commands import (
    AuditFacts,
    BankLineChange,
    BatchLine,
    Command,
    DisputeRefund,
    LedgerCommand,
    NewBookTransfer,
    NewPayout,
    Outcome,
    PartnerReference,
    PayoutChange,
    RecallDecision,
    RecallRequest,
    Reversal,
    ReviewDecision,
    ScopedIdempotencyKey,
    TransactionResult,
    card_party,
    processor_party,
)
from tapgate.ledger.engine import node_ledger, own_load
from tapgate.ledger.engine.group_commit import Ledger
from tapgate.ledger.engine.node_ledger import NodeLedger
from tapgate.runtime import local_rpc
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.compliance import Resolution

_sequence = itertools.count(1)

#: Above the review threshold.
HELD_AMOUNT = 600_000_00
#: Commands that set every field.
COMPLETE_COMMANDS: list[LedgerCommand] = [
    Command(
        type=chart.POS_PAYMENT,
        channel="pos",
        payer=card_party("C-1"),
        payee=processor_party(2),
        amount=5_00,
        payer_pin="1234",
        payee_pin="4321",
        pin_credential="key_1",
        card_proof=ProofResult("C-1", 3, 4, 5, is_pending=True, uid="04A1"),
        pin_policy="required",
        wallets_only=True,
        original_id=6,
        idempotency_key=ScopedIdempotencyKey("key_1", "order-1", b"\xff\0", ("key_2",)),
        reference=PartnerReference(7, "wire-1"),
        context={"memo": "rent: ñ", "metadata": {"items": [1, 2.5, None, True]}},
        caller_error=Code.TERMINAL_NOT_FOUND,
        caller_error_details={"until": "2026-01-31"},
        declines_caller_error=True,
        payout=NewPayout(
            id=1,
            owner_type="processor",
            owner_id=2,
            bank_account_id=3,
            reference="PO1",
            reserve_percent=4,
            minimum=5,
        ),
        payout_change=PayoutChange(
            payout_id=1,
            status="paid",
            allowed=("submitted",),
            bank_reference="B1",
            return_reason="closed",
        ),
        batch_line=BatchLine(1, 2),
        bank_line=BankLineChange(
            line_id=1,
            before="unmatched",
            status="posted",
            reason="fee",
            key=ScopedIdempotencyKey("adm_1", "post-1", b"\xff", ("key_2",)),
        ),
        checks_restriction=True,
        audit=AuditFacts(
            actor={"type": "admin", "id": "adm_1"}, ip="::1", request_id="trace", reason="broken"
        ),
        approval_id=8,
        dispute=DisputeRefund(id=9, response="sorry", decision_reason="late"),
        float_request_id=10,
        cash_out_request_id=11,
        refund_limit=1_000,
        book_transfer=NewBookTransfer(
            book="north", recipient_id="sub_1", recipient_name="Isatu B."
        ),
        traceparent="00-1-2-01",
    ),
    ReviewDecision(
        transaction_id=1,
        release=True,
        alert_id=2,
        resolution=Resolution(
            status="resolved", resolution_notes="checked", transaction_decision="release"
        ),
        audit=AUDIT,
        approval_id=3,
    ),
    Reversal(
        original_id=1,
        amount=2,
        channel="admin",
        idempotency_key=ScopedIdempotencyKey("adm_1", "undo-1", b"\xff", ("key_2",)),
        context={"memo": "wrong person"},
        audit=AUDIT,
        approval_id=3,
        is_refused=True,
    ),
    RecallRequest(
        transaction_id=1,
        max_age_seconds=2,
        hold_seconds=3,
        idempotency_key=ScopedIdempotencyKey("messenger", "recall-1", b"\xff", ("key_2",)),
        reason="wrong person",
        audit=AUDIT,
    ),
    RecallDecision(
        recall_id=1,
        transaction_id=2,
        status="returned",
        is_return=True,
        channel="chat",
        reason="agreed",
        decided_by="adm_1",
        audit=AUDIT,
        approval_id=3,
    ),
]
_DATA_TYPES = {
    inspect.BoolType,
    inspect.BytesType,
    inspect.EnumType,
    inspect.IntType,
    inspect.LiteralType,
    inspect.NoneType,
    inspect.StrType,
}


class Worker(LedgerDriver):
    ledger: NodeLedger

    @property
    def executed(self) -> int:
        return self.ledger.batch_stats.commands


async def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


@pytest.fixture
async def workers(
    tmp_path: Path, database_url: str, database: Database
) -> AsyncIterator[list[Worker]]:
    """Yield a node's two workers. The first is the writer, and the second is connected to it."""
    workers: list[Worker] = []
    for slot in (1, 2):
        driver = await Worker.open(
            database_url, database, slot=slot, create=partial(NodeLedger, tmp_path / "ledger.sock")
        )
        assert isinstance(driver, Worker)
        workers.append(driver)
        await wait_until((tmp_path / "ledger.sock").exists)
    await remove_limits(workers[0])
    await wait_until(lambda: workers[1].ledger.writer is not None)
    yield workers
    for worker in workers:
        await worker.close()
    await require_balanced_books(database)


async def build_transfers(worker: Worker, count: int, **more: Any) -> list[Command]:
    return [
        build_command(
            chart.TRANSFER,
            await worker.create_subscriber(10_00),
            await worker.create_subscriber(),
            1_00,
            idempotency_key=build_request_key(f"transfer-{next(_sequence)}"),
            **more,
        )
        for _ in range(count)
    ]


async def submit_to_all(
    workers: Sequence[Worker], commands: Sequence[Command]
) -> list[Outcome | BaseException]:
    """Submit the commands at once, alternating between the workers."""
    return await asyncio.gather(
        *(
            workers[number % len(workers)].submit(command)
            for number, command in enumerate(commands)
        ),
        return_exceptions=True,
    )


async def test_commands_from_all_workers_share_the_writers_batches(
    workers: list[Worker],
) -> None:
    writer, other = workers
    before = writer.executed
    outcomes = await submit_to_all(workers, await build_transfers(writer, 40))
    assert [outcome.code for outcome in outcomes if isinstance(outcome, Outcome)] == [None] * 40
    assert (writer.executed - before, other.executed) == (40, 0)
    assert writer.ledger.batch_stats.largest_batch >= 20


async def test_worker_with_enough_commands_for_efficient_batches_executes_them_itself(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_load, "PEAK_SECONDS", 0.0)
    writer, other = workers
    before = writer.executed
    minimum = own_load.MIN_OWN_BATCH
    outcomes = await submit_to_all([other], await build_transfers(writer, minimum + 10))
    assert all(isinstance(outcome, Outcome) and outcome.code is None for outcome in outcomes)
    # The commands before the minimum is reached are executed by the writer.
    assert (writer.executed - before, other.executed) == (minimum - 1, 11)
    assert writer.ledger.estimate_commands(64, 0) > 0  # has no commands itself


async def test_worker_with_few_commands_uses_the_writer_again(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, other = workers
    monkeypatch.setattr(own_load, "PEAK_SECONDS", 0.0)
    await submit_to_all([other], await build_transfers(writer, own_load.MIN_OWN_BATCH))
    executed = other.executed
    for command in await build_transfers(writer, 2):
        assert (await other.submit(command)).code is None
    assert other.executed - executed == 1  # the first follows a peak


async def test_writer_with_enough_commands_does_not_wait_for_other_workers(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_load, "PEAK_SECONDS", 0.0)
    writer = workers[0]
    await submit_to_all([writer], await build_transfers(writer, own_load.MIN_OWN_BATCH))
    assert writer.ledger.estimate_commands(64, 0) == 0


async def test_writer_waits_for_commands_that_arrive_later_than_its_own(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, other = workers
    commands = await build_transfers(writer, 6)
    monkeypatch.setattr(node_ledger, "MAX_BATCH_SECONDS", 60.0)
    has_own_commands = asyncio.Event()
    gather_own = Ledger.gather_batch

    async def gather(ledger: Ledger) -> None:
        await gather_own(ledger)
        has_own_commands.set()

    monkeypatch.setattr(Ledger, "gather_batch", gather)
    writer.ledger.last_batch_seconds, writer.ledger.last_batch_end = 60.0, monotonic()
    writer.ledger.expected_commands = len(commands)
    before = writer.ledger.batch_stats.batches
    first = asyncio.create_task(submit_to_all([writer], commands[:2]))
    await has_own_commands.wait()
    await asyncio.gather(first, submit_to_all([other], commands[2:]))
    assert writer.ledger.batch_stats.batches - before == 1


async def test_writer_does_not_wait_long_after_the_last_batch(workers: list[Worker]) -> None:
    ledger = workers[0].ledger
    (command,) = await build_transfers(workers[0], 1)
    ledger.expected_commands, ledger.last_batch_seconds = 64, node_ledger.MAX_BATCH_SECONDS
    ledger.last_batch_end = monotonic() - 1.0
    ledger.has_expected.set()
    assert (await workers[0].submit(command)).code is None
    assert ledger.has_expected.is_set()  # cleared only to wait


@pytest.mark.parametrize(
    ("size", "arrived", "expected"),
    [
        pytest.param(64, 0, 56, id="clients that wait for responses"),
        pytest.param(32, 32, 0, id="commands that arrive at any time"),
        pytest.param(4, 2, 0, id="few commands"),
        pytest.param(500, 100, 438, id="at most a full batch"),
    ],
)
async def test_writer_waits_only_if_commands_arrive_after_batches(
    workers: list[Worker], size: int, arrived: int, expected: int
) -> None:
    ledger = workers[0].ledger
    ledger.batches_without_wait = 0
    assert ledger.estimate_commands(size, arrived) == expected


async def test_one_batch_of_several_waits_so_that_groups_of_clients_merge(
    workers: list[Worker],
) -> None:
    ledger = workers[0].ledger
    ledger.batches_without_wait = 0
    estimates = [ledger.estimate_commands(32, 32) for _ in range(32)]
    assert estimates == ([0] * 15 + [56]) * 2


async def test_worker_that_is_alone_does_not_wait(workers: list[Worker]) -> None:
    assert workers[1].ledger.estimate_commands(64, 0) == 0


async def test_declines_rejections_and_replays_are_the_same_through_the_writer(
    workers: list[Worker],
) -> None:
    writer, other = workers
    sender, receiver = await writer.create_subscriber(5_00), await writer.create_subscriber()
    key = build_request_key("first")
    commands = [
        build_p2p(sender, receiver, 9_00),
        build_p2p(sender, receiver, 1_00, payer_pin=WRONG_PIN),
        build_p2p(sender, 12345, 1_00),
        build_p2p(sender, receiver, 2_00, idempotency_key=key, context={"memo": "rent: ñ"}),
        build_p2p(sender, receiver, 2_00, idempotency_key=key, context={"memo": "rent: ñ"}),
    ]
    outcomes = [await other.submit(command) for command in commands]
    assert [outcome.code for outcome in outcomes] == [
        Code.INSUFFICIENT_FUNDS,
        Code.INVALID_PIN,
        Code.SUBSCRIBER_NOT_FOUND,
        None,
        None,
    ]
    assert outcomes[4].replayed and outcomes[4].result == outcomes[3].result
    assert [await writer.submit(command) for command in commands[3:]] == [outcomes[4]] * 2
    assert outcomes[1].details == {"attempts_remaining": 2}
    assert await writer.get_balance(receiver) == 2_00


async def test_command_that_cannot_be_stored_raises_an_error_in_its_worker(
    workers: list[Worker],
) -> None:
    commands = await build_transfers(workers[0], 4)
    commands += await build_transfers(workers[0], 1, context={"memo": "\0"})
    outcomes = await submit_to_all(workers[1:], commands)
    assert [isinstance(outcome, Outcome) for outcome in outcomes] == [True] * 4 + [False]
    assert isinstance(outcomes[4], ApiError) and outcomes[4].code is Code.INTERNAL_ERROR


async def test_writer_runs_the_before_commit_hook_for_other_workers(workers: list[Worker]) -> None:
    writer, other = workers
    calls: list[tuple[LedgerCommand, TransactionResult]] = []

    async def record(tx: Transaction, command: LedgerCommand, result: TransactionResult) -> bytes:
        calls.append((command, result))
        return b"related"

    writer.before_commit = record
    sender, merchant = await writer.create_subscriber(1_000_000_00), await writer.create_processor()
    transfer = build_p2p(sender, await writer.create_subscriber(), HELD_AMOUNT)
    held = (await other.submit(transfer)).require_accepted()
    payment = (await other.submit(build_payment(sender, merchant, 5_00))).require_accepted()
    commands = [
        build_refund(merchant, payment.transaction_id, 2_00, audit=AUDIT, approval_id=7),
        ReviewDecision(transaction_id=held.transaction_id, release=True, audit=AUDIT),
    ]
    outcomes = [await other.submit(command) for command in commands]
    results = [outcome.require_accepted() for outcome in outcomes]
    assert calls == list(zip(commands, results, strict=True))
    assert [outcome.related for outcome in outcomes] == [b"related"] * 2
    assert other.executed == 0


async def test_failing_writer_hook_fails_only_its_command(workers: list[Worker]) -> None:
    writer, other = workers

    async def fail(*_: object) -> None:
        raise ApiError(Code.ALREADY_RESOLVED)

    writer.before_commit = fail
    commands = await build_transfers(writer, 2) + await build_transfers(writer, 1, audit=AUDIT)
    first, second, failed = await submit_to_all([other], commands)
    assert isinstance(first, Outcome) and isinstance(second, Outcome)
    assert isinstance(failed, ApiError) and failed.code is Code.INTERNAL_ERROR


def test_commands_are_data() -> None:
    """A worker can send every command field to the writer, so none contains code."""
    visited: list[str] = []

    def require_data(info: object, path: str) -> None:
        visited.append(path)
        if isinstance(info, inspect.StructType):
            for field in info.fields:
                require_data(field.type, f"{path}.{field.name}")
        elif isinstance(info, inspect.UnionType):
            for member in info.types:
                require_data(member, path)
        elif isinstance(info, inspect.VarTupleType | inspect.ListType):
            require_data(info.item_type, path)
        elif isinstance(info, inspect.DictType):
            require_data(info.key_type, path)
            if path != "Command.context":  # request JSON
                require_data(info.value_type, path)
        else:
            assert type(info) in _DATA_TYPES, path

    for command_type in get_args(LedgerCommand):
        require_data(inspect.type_info(command_type), command_type.__name__)
    assert {"Command.audit.actor", "ReviewDecision.resolution.status"} <= set(visited)


async def test_every_command_reaches_the_writer_unchanged(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tuple(map(type, COMPLETE_COMMANDS)) == get_args(LedgerCommand)
    for command in COMPLETE_COMMANDS:
        unset = [
            field.name
            for field in msgspec.structs.fields(command)
            if getattr(command, field.name) == field.default
        ]
        assert unset == []
    writer, other = workers
    received: list[LedgerCommand] = []
    outcome = Outcome(None, Code.ALREADY_RESOLVED)

    def enqueue(command: LedgerCommand) -> asyncio.Future[Outcome]:
        received.append(command)
        future = asyncio.get_running_loop().create_future()
        future.set_result(outcome)
        return future

    monkeypatch.setattr(writer.ledger, "enqueue", enqueue)
    assert [await other.submit(command) for command in COMPLETE_COMMANDS] == [outcome] * 5
    assert received == COMPLETE_COMMANDS


async def test_stopping_writer_hands_over_without_an_error(
    workers: list[Worker], database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger, "HANDOVER_SECONDS", 30.0)
    writer, other = workers
    commands = await build_transfers(writer, 60)
    submitted: list[asyncio.Task[Outcome]] = []

    async def keep_submitting() -> None:
        for command in commands:
            submitted.append(asyncio.create_task(other.submit(command)))
            await asyncio.sleep(0.002)

    load = asyncio.create_task(keep_submitting())
    await wait_until(lambda: len(submitted) > 20)
    await writer.ledger.stop()
    await load
    outcomes = await asyncio.gather(*submitted)
    assert {outcome.code for outcome in outcomes} == {None}
    assert other.executed > 0
    await wait_until(lambda: other.ledger.lock.descriptor is not None)
    third = await Worker.open(
        database_url, other.database, slot=3, create=partial(NodeLedger, tmp_path / "ledger.sock")
    )
    await wait_until(lambda: third.ledger.writer is not None)  # type: ignore[attr-defined]
    assert (await third.submit(commands[0])).replayed
    await third.close()


@pytest.mark.usefixtures("workers")
async def test_only_the_same_user_can_send_commands_to_the_writer(tmp_path: Path) -> None:
    assert (tmp_path / "ledger.sock").stat().st_mode & 0o777 == 0o600


async def test_lost_writer_is_503_for_waiting_commands_and_the_next_ones_succeed(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, other = workers
    commands = await build_transfers(writer, 6)
    blocked = asyncio.Event()

    async def block(*_: Any) -> None:
        blocked.set()
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(writer.ledger, "run_batch", block)
    waiting = asyncio.create_task(submit_to_all([other], commands[:3]))
    await blocked.wait()
    assert writer.ledger.worker is not None
    writer.ledger.worker.cancel()  # as if the process were killed
    for channel in list(writer.ledger.channels):
        channel.stream.transport.abort()
    errors = await waiting
    expected = [Code.SERVICE_UNAVAILABLE] * 3
    assert [error.code for error in errors if isinstance(error, ApiError)] == expected
    outcomes = await submit_to_all([other], commands)
    assert [outcome.code for outcome in outcomes if isinstance(outcome, Outcome)] == [None] * 6
    assert other.executed == 6
    monkeypatch.undo()
    writer.ledger.worker = None


async def test_unresponsive_writer_is_abandoned(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, other = workers
    first, second = await build_transfers(writer, 2)
    monkeypatch.setattr(local_rpc, "RESPONSE_TIMEOUT_SECONDS", 0.2)
    released = asyncio.Event()
    run_batch = writer.ledger.run_batch

    async def hang(*arguments: Any) -> Any:
        await released.wait()
        return await run_batch(*arguments)

    monkeypatch.setattr(writer.ledger, "run_batch", hang)
    (error,) = await submit_to_all([other], [first])
    assert isinstance(error, ApiError) and error.code is Code.SERVICE_UNAVAILABLE
    monkeypatch.setattr(local_rpc, "RESPONSE_TIMEOUT_SECONDS", 30.0)
    released.set()
    # The writer executes the command late; a retry is a replay or executes it, never both.
    assert (await other.submit(first)).code is None
    assert (await other.submit(second)).code is None
    await wait_until(lambda: writer.executed > 0)
    payer = first.payer.key
    assert isinstance(payer, int)
    assert await other.get_balance(payer) == 9_00


async def test_writer_that_reads_nothing_is_left_without_waiting_for_it(
    tmp_path: Path, workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its socket is full, so closing the connection gracefully would wait for it forever."""
    (command,) = await build_transfers(workers[0], 1, context={"memo": "m" * 1000})
    stopped = asyncio.Event()

    async def greet_only(_: asyncio.StreamReader, stream: asyncio.StreamWriter) -> None:
        stream.write(local_rpc.GREETING)
        await stopped.wait()
        stream.close()

    path = tmp_path / "hung.sock"
    async with await asyncio.start_unix_server(greet_only, path, limit=1):
        connection = await node_ledger.WriterConnection.open(path)
        assert connection is not None
        monkeypatch.setattr(local_rpc, "RESPONSE_TIMEOUT_SECONDS", 0.2)
        outcomes = [connection.submit(command) for _ in range(2000)]
        async with asyncio.timeout(30):
            await connection.run()
        assert connection.is_closing
        for outcome in outcomes:
            assert isinstance(outcome.exception(), ApiError)
        stopped.set()
