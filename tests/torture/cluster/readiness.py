"""Seconds until each gateway's `/ready` noticed a fault, and its end."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Final

import msgspec

from torture.client_connection import ClientConnection, ConnectFailedError, NoResponseError
from torture.round_stats import ReadinessStats

_INTERVAL_SECONDS: Final = 0.1
_TIMEOUT_SECONDS: Final = 1.0
_REQUEST: Final = b"GET /ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
_NO_RESPONSE: Final = "no response"


class Change(msgspec.Struct, frozen=True):
    """A gateway's readiness from this time on."""

    at: float
    is_ready: bool
    reason: str  # empty if ready


class ReadinessWatch:
    """Asks every gateway ten times per second, over a new connection like a load balancer."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        self._ports = ports
        self._changes: dict[str, list[Change]] = {name: [] for name in ports}
        self._started_at = self._ended_at = 0.0

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._watch(name)) for name in self._ports]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def start_fault(self) -> None:
        self._started_at = time.monotonic()
        self._ended_at = 0.0

    def end_fault(self) -> None:
        self._ended_at = time.monotonic()

    def measure(self) -> ReadinessStats:
        """Return how the gateways' readiness changed since the start of the fault."""
        noticed, recovered = {}, {}
        reasons: set[str] = set()
        for name, changes in self._changes.items():
            relevant = [change for change in changes if change.at >= self._started_at]
            failures = [change for change in relevant if not change.is_ready]
            if not failures:
                continue
            noticed[name] = failures[0].at - self._started_at
            reasons.update(change.reason for change in failures)
            if relevant[-1].is_ready and self._ended_at:
                recovered[name] = relevant[-1].at - self._ended_at
        return ReadinessStats(
            gateways=len(self._ports),
            seconds_until_not_ready=noticed,
            seconds_until_ready=recovered,
            reasons=sorted(reasons),
        )

    async def _watch(self, name: str) -> None:
        while True:
            is_ready, reason = await self._ask(self._ports[name])
            changes = self._changes[name]
            if not changes or (changes[-1].is_ready, changes[-1].reason) != (is_ready, reason):
                changes.append(Change(time.monotonic(), is_ready, reason))
            await asyncio.sleep(_INTERVAL_SECONDS)

    async def _ask(self, port: int) -> tuple[bool, str]:
        connection = ClientConnection(port, timeout_seconds=_TIMEOUT_SECONDS)
        try:
            response = await connection.send(_REQUEST)
        except (ConnectFailedError, NoResponseError):
            return False, _NO_RESPONSE
        finally:
            connection.close()
        if response.status == 200:
            return True, ""
        reasons = [reason["code"] for reason in response.body.get("reasons", [])]
        return False, " + ".join(reasons) or str(response.status)
