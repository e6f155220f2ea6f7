"""One round: clients run the planned operations under faults, retry, and replay some of them."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

from torture.approvals import shorten_leases
from torture.client_connection import (
    RESPONSE_TIMEOUT_SECONDS,
    ClientConnection,
    ConnectFailedError,
    NoResponseError,
    Response,
)
from torture.client_ledger import (
    GIVING_BACK,
    ClientLedger,
    OperationState,
    binds_key,
    list_allowed_error_codes,
    parse_acknowledgment,
)
from torture.faults import FaultInjector
from torture.finance import list_paid_lines
from torture.findings import Findings
from torture.flows import FLOWS
from torture.participants import Participants
from torture.plan import Fault, RoundPlan
from torture.round_stats import RoundStats
from torture.tap_proofs import get_proof, is_overtaken

_CLIENT_COUNT: Final = 16
_MAX_DUPLICATES: Final = 2  # maximum per operation
_RETRY_DELAY_SECONDS: Final = 0.05
_POLL_SECONDS: Final = 0.05  # while a batch runs or an approval is executed
_POLLS_PER_LEASE: Final = 20
_RETRY_TIMEOUT_SECONDS: Final = 60.0
_CONFLICT_CODES: Final = frozenset({"DUPLICATE_REQUEST", "DUPLICATE_REFERENCE"})


class LoadTarget(Protocol):
    """The system under test."""

    @property
    def port(self) -> int: ...

    @property
    def database_url(self) -> str: ...

    def list_ports(self, client: int) -> Sequence[int]:
        """Return the ports for a client's requests: the first, and the ports for its duplicates."""

    def restart(self) -> None: ...

    async def wait_until_healthy(self, *, workers: int = 1) -> None: ...


class Injector(Protocol):
    needs_restart: bool

    async def inject(self, fault: Fault) -> None: ...


class LoadClient:
    """Runs operations one after another. The extra connections send concurrent duplicates."""

    def __init__(self, ports: Sequence[int], timeout_seconds: float) -> None:
        self.connections = [
            ClientConnection(ports[index % len(ports)], timeout_seconds=timeout_seconds)
            for index in range(1 + _MAX_DUPLICATES)
        ]

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


class LoadRound:
    def __init__(
        self,
        installation: LoadTarget,
        participants: Participants,
        client_ledger: ClientLedger,
        findings: Findings,
        plan: RoundPlan,
        *,
        injector: Callable[[Any, Sequence[ClientConnection]], Injector] = FaultInjector,
        rate: float | None = None,
        timeout_seconds: float = RESPONSE_TIMEOUT_SECONDS,
    ) -> None:
        """Prepare a round; `rate` limits the operations per second."""
        self._installation = installation
        self._participants = participants
        self._client_ledger = client_ledger
        self._findings = findings
        self._plan = plan
        self._clients = [
            LoadClient(installation.list_ports(index), timeout_seconds)
            for index in range(_CLIENT_COUNT)
        ]
        self._fault_injector = injector(
            installation,
            [connection for client in self._clients for connection in client.connections],
        )
        self._operations: list[OperationState] = []
        self._attempted: dict[str, asyncio.Event] = {}
        self._interval = 0.0 if rate is None else 1 / rate
        self._due_times: dict[str, float] = {}
        self._sent = 0
        self._last_response_at = time.monotonic()
        self._fault_triggers: list[tuple[int, asyncio.Event]] = []
        self.stats = RoundStats()

    async def run(self) -> list[OperationState]:
        """Run the round and return its operations; each unacknowledged one is a finding."""
        try:
            await self._run_with_faults()
            await self._wait_until_healthy()
            await self._retry_unacknowledged()
            await self._replay_some()
        finally:
            for client in self._clients:
                client.close()
        for state in list(self._operations):
            if state.operation.kind == "batch" and state.acknowledgment is not None:
                self._operations += list_paid_lines(state, self._findings)
        for state in self._operations:
            self._client_ledger.operations[state.operation.idempotency_key] = state
            if state.acknowledgment is not None:
                self._client_ledger.apply(state)
            self.stats.add(state)
        return self._operations

    async def _run_with_faults(self) -> None:
        began = time.monotonic()
        for index, operation in enumerate(self._plan.operations):
            state = OperationState(operation)
            self._due_times[operation.idempotency_key] = began + index * self._interval
            self._operations.append(state)
            self._client_ledger.operations[operation.idempotency_key] = state
            self._attempted[operation.idempotency_key] = asyncio.Event()
        injections = [self._inject(fault) for fault in self._plan.faults]
        tasks = [asyncio.create_task(injection) for injection in injections]
        try:
            await self._distribute(self._operations, self._attempt_first)
            for _, trigger in self._fault_triggers:
                trigger.set()
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _inject(self, fault: Fault) -> None:
        trigger = asyncio.Event()
        self._fault_triggers.append((fault.after_operations, trigger))
        await trigger.wait()
        await self._fault_injector.inject(fault)
        if self._fault_injector.needs_restart:
            self._fault_injector.needs_restart = False
            self._installation.restart()

    async def _wait_until_healthy(self) -> None:
        await self._installation.wait_until_healthy()

    async def _distribute(
        self,
        operations: Sequence[OperationState],
        run_operation: Callable[[LoadClient, OperationState], Coroutine[Any, Any, None]],
    ) -> None:
        """Distribute the operations among the clients, which work concurrently."""

        async def work(client: LoadClient, assigned: Sequence[OperationState]) -> None:
            for state in assigned:
                await run_operation(client, state)

        async with asyncio.TaskGroup() as group:
            for index, client in enumerate(self._clients):
                group.create_task(work(client, operations[index::_CLIENT_COUNT]))

    async def _attempt_first(self, client: LoadClient, state: OperationState) -> None:
        operation = state.operation
        try:
            if operation.original_key and not await self._can_follow(state):
                return
            due_at = self._due_times[operation.idempotency_key]
            await asyncio.sleep(max(0.0, due_at - time.monotonic()))
            began = time.monotonic()
            if operation.cut_point is not None:
                await self._send_and_disconnect(client, state)
            else:
                await self._send_with_duplicates(client, state)
            if operation.retries_immediately:
                await self._retry_until_acknowledged(client, state)
                wait = time.monotonic() - began
                self.stats.longest_wait_seconds = max(self.stats.longest_wait_seconds, wait)
        finally:
            self._attempted[operation.idempotency_key].set()

    async def _can_follow(self, state: OperationState) -> bool:
        """Wait for the original's first attempt; return whether it is acknowledged as done."""
        original_key = state.operation.original_key
        if original_key in self._attempted:
            await self._attempted[original_key].wait()
        original = self._client_ledger.operations[original_key]
        if original.acknowledgment is None or not original.acknowledgment.succeeded:
            return False
        transaction_id = original.acknowledgment.transaction_id
        if state.operation.kind in GIVING_BACK:
            state.original_transaction_id = state.target_id = transaction_id
        else:  # a payout, or what followed it
            state.original_transaction_id = original.original_transaction_id or transaction_id
            state.target_id = original.resource_id or original.target_id
        return True

    async def _send_and_disconnect(self, client: LoadClient, state: OperationState) -> None:
        assert state.operation.cut_point is not None
        self._count_sent()
        connection = client.connections[0]
        state.attempts += 1
        state.unanswered_attempts += 1
        try:
            connection.close()
            await connection.send_and_disconnect(
                self._build_request(state), state.operation.cut_point
            )
        except ConnectFailedError:
            await asyncio.sleep(_RETRY_DELAY_SECONDS)

    async def _send_with_duplicates(self, client: LoadClient, state: OperationState) -> None:
        """Send the request once, along with its concurrent duplicates."""
        self._count_sent()
        duplicates = state.operation.duplicates
        self.stats.duplicates += duplicates
        request = self._build_request(state)
        connections = client.connections[: 1 + duplicates]
        await asyncio.gather(
            *(self._attempt(connection, state, request) for connection in connections)
        )

    async def _retry_until_acknowledged(self, client: LoadClient, state: OperationState) -> None:
        deadline = time.monotonic() + _RETRY_TIMEOUT_SECONDS
        polls = 0
        while state.acknowledgment is None:
            if time.monotonic() > deadline:
                self._findings.add("unanswered", state.operation.idempotency_key, "no response")
                return
            step = state.step
            await self._attempt(client.connections[0], state, self._build_request(state))
            if step and step == state.step:
                polls += 1
                if polls % _POLLS_PER_LEASE == 0:
                    await shorten_leases(self._installation.database_url)
                await asyncio.sleep(_POLL_SECONDS)

    async def _attempt(
        self, connection: ClientConnection, state: OperationState, request: bytes
    ) -> None:
        state.attempts += 1
        step = state.step
        try:
            response = await connection.send(request)
        except ConnectFailedError:
            self.stats.failed_attempts["no connection"] += 1
            state.unanswered_attempts += 1
            await asyncio.sleep(_RETRY_DELAY_SECONDS)
        except NoResponseError as error:
            self.stats.failed_attempts[f"no response: {type(error.__cause__).__name__}"] += 1
            state.unanswered_attempts += 1
        else:
            self.handle_response(state, response, step)
            if response.status == 503:
                self.stats.failed_attempts[f"503: {response.body.get('error')}"] += 1
                await asyncio.sleep(_RETRY_DELAY_SECONDS)

    def handle_response(self, state: OperationState, response: Response, step: str = "") -> None:
        key = state.operation.idempotency_key
        if response.status == 503:
            state.unanswered_attempts += 1
            return
        if response.status >= 500:
            state.unanswered_attempts += 1
            self._findings.add("failure", key, f"returned {response.status} {response.body}")
            return
        self._update_silence()
        if is_overtaken(state, response.code):
            self.stats.overtaken_taps += 1
            state.proof = None  # tap the card again
            return
        if response.status < 300:
            state.originals.setdefault(step, response.body)
            state.resource_id = state.resource_id or response.body.get("payout_id", "")
        if flow := FLOWS.get(state.operation.kind):
            outcome = flow.follow(state, response, step, self._findings)
            if outcome is None:
                return
            response = outcome
        acknowledgment = parse_acknowledgment(state.operation, response)
        if acknowledgment.code and acknowledgment.code not in list_allowed_error_codes(
            state.operation
        ):
            self._findings.add("rejection", key, f"rejected: {response.status} {response.body}")
            if (
                not acknowledgment.is_recorded
                or acknowledgment.code in _CONFLICT_CODES
                or response.status in (401, 404, 429)
            ):
                state.unanswered_attempts += 1
                return
        previous = state.acknowledgment
        if previous is None:
            state.acknowledgment = acknowledgment
            state.succeeded_unacknowledged = response.replayed and state.unanswered_attempts > 0
        elif acknowledgment != previous and (acknowledgment.is_recorded or previous.is_recorded):
            self._findings.add(
                "wrong values", key, f"acknowledged {previous}, then {acknowledgment}"
            )

    async def _retry_unacknowledged(self) -> None:
        """Retry all unacknowledged operations, refunds last."""
        unacknowledged = [state for state in self._operations if state.acknowledgment is None]
        if any(state.step for state in unacknowledged):
            await shorten_leases(self._installation.database_url)
        waiting = [state for state in unacknowledged if state.operation.original_key]
        await self._distribute(
            [state for state in unacknowledged if not state.operation.original_key],
            self._retry_until_acknowledged,
        )
        while waiting:
            # An operation can follow one that follows another.
            keys = {state.operation.idempotency_key for state in waiting}
            possible = []
            for state in [item for item in waiting if item.operation.original_key not in keys]:
                waiting.remove(state)
                if await self._can_follow(state):
                    possible.append(state)
                else:
                    self._drop(state)
            await self._distribute(possible, self._retry_until_acknowledged)

    def _drop(self, state: OperationState) -> None:
        """Forget an operation whose original did not succeed."""
        self._operations.remove(state)
        del self._client_ledger.operations[state.operation.idempotency_key]
        self.stats.skipped += 1

    async def _replay_some(self) -> None:
        replayed = [
            state
            for state in self._operations
            if state.acknowledgment and state.operation.is_replayed
        ]
        replayed += [self._client_ledger.operations[name] for name in self._plan.replayed_keys]
        conflicting = [
            state
            for state in self._operations
            if state.operation.sends_conflict
            and state.acknowledgment is not None
            and binds_key(state)
        ]
        self.stats.replays, self.stats.conflicts = len(replayed), len(conflicting)
        await self._distribute(replayed, self._replay)
        await self._distribute(conflicting, self._send_conflicting)

    async def _replay(self, client: LoadClient, state: OperationState) -> None:
        """Require the original response, marked as a replay."""
        flow = FLOWS.get(state.operation.kind)
        for step in ("",) if flow is None else flow.keyed_steps:
            original = state.originals.get(step)
            if flow is not None and original is None:
                continue  # it was rejected, so nothing is stored
            response = await self._send_until_final(client, self._build_request(state, step))
            if response is None:
                return
            if flow is None:
                self.handle_response(state, response)
            self._require_replay(state, original, response)

    def _require_replay(
        self, state: OperationState, original: dict[str, Any] | None, response: Response
    ) -> None:
        acknowledgment, key = state.acknowledgment, state.operation.idempotency_key
        assert acknowledgment is not None
        flow = FLOWS.get(state.operation.kind)
        is_keyed = acknowledgment.is_recorded or flow is not None
        if is_keyed and not response.replayed:
            self._findings.add("duplicated", key, f"executed again on replay: {response.body}")
        fields = response.body if flow is None else flow.replayed_fields or response.body
        if original is not None and any(
            original.get(name) != response.body.get(name) for name in fields
        ):
            detail = f"replayed as {response.body}, originally {original}"
            self._findings.add("wrong values", key, detail)

    async def _send_conflicting(self, client: LoadClient, state: OperationState) -> None:
        """Send different content under an idempotency key that is in use."""
        operation = state.operation
        request = self._participants.build_request(
            operation, state.target_id, state.proof, altered=True
        )
        response = await self._send_until_final(client, request)
        if response is not None and response.code not in _CONFLICT_CODES:
            self._findings.add(
                "duplicated",
                operation.idempotency_key,
                f"conflicting request accepted: {response.body}",
            )

    async def _send_until_final(self, client: LoadClient, request: bytes) -> Response | None:
        deadline = time.monotonic() + _RETRY_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            try:
                response = await client.connections[0].send(request)
            except (ConnectFailedError, NoResponseError):
                response = None
            if response is not None and response.status != 503:
                return response
            await asyncio.sleep(_RETRY_DELAY_SECONDS)
        self._findings.add("unanswered", "replay", "no response")
        return None

    def _build_request(self, state: OperationState, step: str | None = None) -> bytes:
        """Build the request of a step, by default the next one."""
        if flow := FLOWS.get(state.operation.kind):
            request = flow.build(self._participants, state, state.step if step is None else step)
            return self._participants.build_staff_request(request)
        proof = get_proof(self._participants, self._client_ledger, state)
        return self._participants.build_request(state.operation, state.target_id, proof)

    def _count_sent(self) -> None:
        self._sent += 1
        for after, trigger in self._fault_triggers:
            if self._sent >= after:
                trigger.set()

    def _update_silence(self) -> None:
        now = time.monotonic()
        self.stats.longest_silence_seconds = max(
            self.stats.longest_silence_seconds, now - self._last_response_at
        )
        self._last_response_at = now
