"""Signals: an acknowledged change has reached all listeners, even after lost connections."""

import asyncio
import contextlib
import gc
import itertools
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tapgate.runtime.store import signals as signals_module
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.signals import Signals

_LISTENER_CONDITION = "application_name = 'tapgate listener'"

#: Program that prints each payload that it receives on a line.
_OTHER_PROCESS_SCRIPT = """
import asyncio, sys
from tapgate.runtime.store.signals import Signals

async def main():
    signals = Signals(sys.argv[1])
    signals.subscribe("keys", lambda payload: print(payload, flush=True))
    await signals.start()
    while not signals.is_listening:  # `start` returns even if connecting failed, and retries
        await asyncio.sleep(0.01)
    print("listening", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def _raise_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the query timeout, because responses may take longer on a busy machine."""
    monkeypatch.setattr(signals_module, "QUERY_TIMEOUT_SECONDS", 30.0)


@pytest.fixture
async def signals(database_url: str) -> AsyncIterator[Signals]:
    signals = Signals(database_url)
    await signals.start()
    yield signals
    await signals.stop()


@pytest.fixture
async def other_signals(database_url: str) -> AsyncIterator[Signals]:
    signals = Signals(database_url)
    await signals.start()
    yield signals
    await signals.stop()


async def publish_change(
    database: Database, signals: Signals, payload: str, topic: str = "keys"
) -> None:
    async with database.transaction() as tx:
        ticket = await signals.publish(tx, topic, payload)
    await signals.wait_for_acks(ticket)


async def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def terminate_connections(database: Database) -> None:
    await database.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_LISTENER_CONDITION}"
    )


async def test_all_listeners_receive_a_change_before_it_is_acknowledged(
    database: Database, signals: Signals, other_signals: Signals
) -> None:
    received: list[tuple[str, str]] = []
    signals.subscribe("keys", lambda payload: received.append(("local", payload)))
    other_signals.subscribe("keys", lambda payload: received.append(("remote", payload)))
    other_signals.subscribe("rules", lambda payload: received.append(("wrong topic", payload)))
    for number in range(20):
        await publish_change(database, signals, f"key {number} é\n")
        assert sorted(received) == [("local", f"key {number} é\n"), ("remote", f"key {number} é\n")]
        received.clear()


async def test_concurrent_changes_are_all_acknowledged(
    database: Database, signals: Signals, other_signals: Signals
) -> None:
    received: set[str] = set()
    other_signals.subscribe("keys", received.add)

    async def publish_and_check(payload: str) -> None:
        await publish_change(database, signals, payload)
        assert payload in received

    await asyncio.gather(*(publish_and_check(str(number)) for number in range(50)))


async def test_rolled_back_change_is_not_signaled(
    database: Database, signals: Signals, other_signals: Signals
) -> None:
    received: list[str] = []
    other_signals.subscribe("keys", received.append)
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as tx:
            await signals.publish(tx, "keys", "rolled back")
            _ = 1 / 0
    await publish_change(database, signals, "committed")
    assert received == ["committed"]


async def test_failing_handler_does_not_prevent_other_handlers_from_running(
    database: Database, signals: Signals
) -> None:
    received: list[str] = []
    signals.subscribe("keys", lambda _: 1 // 0)  # type: ignore[arg-type, return-value]
    signals.subscribe("keys", received.append)
    await publish_change(database, signals, "first")
    assert received == ["first"]


async def test_lost_connection_is_detected_and_reopened(
    database: Database, signals: Signals, other_signals: Signals
) -> None:
    listening_states: list[bool] = []
    received: list[str] = []
    other_signals.on_reconnect(lambda: listening_states.append(other_signals.is_listening))
    other_signals.subscribe("keys", received.append)
    await terminate_connections(database)
    await wait_until(lambda: not other_signals.is_listening)
    await wait_until(lambda: other_signals.is_listening and signals.is_listening)
    assert listening_states == [False]  # so caches are cleared before they are used again
    await publish_change(database, signals, "afterwards")
    assert received == ["afterwards"]


async def test_acknowledgment_survives_a_connection_lost_while_waiting(
    database: Database, signals: Signals, other_signals: Signals
) -> None:
    for number in range(10):
        termination = asyncio.create_task(terminate_connections(database))
        await publish_change(database, signals, str(number))
        await termination
    await wait_until(lambda: signals.is_listening and other_signals.is_listening)
    received: list[str] = []
    other_signals.subscribe("keys", received.append)
    async with asyncio.timeout(60):  # the last termination may not have been detected yet
        for number in itertools.count():
            await publish_change(database, signals, f"afterwards {number}")
            if received:
                break
    assert len(set(received)) == len(received)


def test_stopping_during_acknowledgment_raises_no_unhandled_exception(database_url: str) -> None:
    """The query fails after its waiting task and its connection have ended."""
    unhandled: list[object] = []

    async def stop_during_acknowledgments() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, error: unhandled.append(error))
        database = await Database.connect(database_url)
        for _ in range(20):
            signals = Signals(database_url)
            await signals.start()
            async with database.transaction() as tx:
                ticket = await signals.publish(tx, "keys", "changed")
            waiting = asyncio.create_task(signals.wait_for_acks(ticket))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await signals.stop()
        gc.collect()
        await database.close()

    with ThreadPoolExecutor() as thread:  # its own loop does not report errors of other tests
        thread.submit(asyncio.run, stop_during_acknowledgments()).result()
    assert unhandled == []


async def test_change_reaches_other_processes_and_waits_only_briefly_for_hung_or_dead_ones(
    database: Database, database_url: str, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _OTHER_PROCESS_SCRIPT, database_url, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    try:
        assert await other.stdout.readline() == b"listening\n"
        await publish_change(database, signals, "received")
        assert await other.stdout.readline() == b"received\n"
        other.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(signals_module, "ACK_TIMEOUT_SECONDS", 1.0)
        async with asyncio.timeout(30):  # must not block indefinitely
            await publish_change(database, signals, "not received")
        other.kill()
        async with asyncio.timeout(30):
            await publish_change(database, signals, "not received either")
    finally:
        with contextlib.suppress(ProcessLookupError):
            other.kill()
        await other.communicate()


async def test_start_without_a_database_does_not_fail(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals_module, "QUERY_TIMEOUT_SECONDS", 1.0)
    database_name = database_url.partition("@/")[2].partition("?")[0]
    signals = Signals(database_url.replace(database_name, "not_there"))
    await signals.start()
    assert not signals.is_listening
    await signals.stop()
