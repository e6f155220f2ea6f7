"""One round: clients run the planned operations under faults, retry, and replay some of them."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from torture.client_connection import (
    ClientConnection,
    ConnectFailedError,
    NoResponseError,
    Response,
)
from torture.client_ledger import (
    ClientLedger,
    OperationState,
    allowed_error_codes,
    parse_acknowledgment,
)
from torture.faults import FaultInjector
from torture.findings import Findings
from torture.installation import Installation
from torture.participants import Participants
from torture.plan import Fault, RoundPlan
from torture.round_stats import RoundStats

_CLIENT_COUNT: Final = 16
_MAX_DUPLICATES: Final = 2  # maximum per operation
_RETRY_DELAY_SECONDS: Final = 0.05
_RETRY_TIMEOUT_SECONDS: Final = 60.0
_CONFLICT_CODES: Final = frozenset({"DUPLICATE_REQUEST", "DUPLICATE_REFERENCE"})


class LoadClient:
    """Runs operations one after another. The extra connections send concurrent duplicates."""

    def __init__(self, port: int) -> None:
        self.connections = [ClientConnection(port) for _ in range(1 + _MAX_DUPLICATES)]

    def close(self) -> None:
        for line in self.connections:
            line.close()


class LoadRound:
    def __init__(
        self,
        installation: Installation,
        participants: Participants,
        book: ClientLedger,
        findings: Findings,
        plan: RoundPlan,
    ) -> None:
        self._installation = installation
        self._participants = participants
        self._client_ledger = book
        self._findings = findings
        self._plan = plan
        self._clients = [LoadClient(installation.port) for _ in range(_CLIENT_COUNT)]
        self._fault_injector = FaultInjector(
            installation, [line for client in self._clients for line in client.connections]
        )
        self._operations: list[OperationState] = []
        self._attempted: dict[str, asyncio.Event] = {}
        self._sent = 0
        self._last_response_at = time.monotonic()
        self._fault_triggers: list[tuple[int, asyncio.Event]] = []
        self.stats = RoundStats()

    async def run(self) -> list[OperationState]:
        """Run the round and return its operations, each acknowledged."""
        try:
            await self._run_with_faults()
            await self._wait_until_healthy()
            await self._retry_unacknowledged()
            await self._replay_some()
        finally:
            for client in self._clients:
                client.close()
        for state in self._operations:
            if state.acknowledgment is not None:
                self._client_ledger.apply(state)
        self._update_stats()
        return self._operations

    async def _run_with_faults(self) -> None:
        for operation in self._plan.operations:
            state = OperationState(operation)
            self._operations.append(state)
            self._client_ledger.operations[operation.idempotency_key] = state
            self._attempted[operation.idempotency_key] = asyncio.Event()
        strikes = [self._inject(disaster) for disaster in self._plan.faults]
        striking = [asyncio.create_task(strike) for strike in strikes]
        try:
            await self._distribute(self._operations, self._attempt_first)
            for _, due in self._fault_triggers:
                due.set()
            await asyncio.gather(*striking)
        finally:
            for task in striking:
                task.cancel()
            await asyncio.gather(*striking, return_exceptions=True)

    async def _inject(self, disaster: Fault) -> None:
        due = asyncio.Event()
        self._fault_triggers.append((disaster.after_operations, due))
        await due.wait()
        await self._fault_injector.inject(disaster)
        if self._fault_injector.needs_restart:
            self._fault_injector.needs_restart = False
            self._installation.restart()

    async def _wait_until_healthy(self) -> None:
        await self._installation.wait_until_healthy()

    async def _distribute(
        self,
        standings: Sequence[OperationState],
        act: Callable[[LoadClient, OperationState], Coroutine[Any, Any, None]],
    ) -> None:
        """Distribute the operations among the clients, which work concurrently."""

        async def work(client: LoadClient, own: Sequence[OperationState]) -> None:
            for state in own:
                await act(client, state)

        async with asyncio.TaskGroup() as group:
            for place, client in enumerate(self._clients):
                group.create_task(work(client, standings[place::_CLIENT_COUNT]))

    async def _attempt_first(self, client: LoadClient, state: OperationState) -> None:
        operation = state.operation
        try:
            if operation.kind == "refund" and not await self._can_refund(state):
                return
            if operation.cut_point is not None:
                await self._send_and_disconnect(client, state)
            else:
                await self._send_with_duplicates(client, state)
            if operation.retries_immediately:
                await self._retry_until_acknowledged(client, state)
        finally:
            self._attempted[operation.idempotency_key].set()

    async def _can_refund(self, state: OperationState) -> bool:
        """Return whether the payment is known to have succeeded; otherwise defer the refund."""
        of = state.operation.refunded_key
        if of in self._attempted:
            await self._attempted[of].wait()
        paid = self._client_ledger.operations[of].acknowledgment
        if paid is None or not paid.succeeded:
            return False
        state.original_transaction_id = paid.transaction_id
        return True

    async def _send_and_disconnect(self, client: LoadClient, state: OperationState) -> None:
        assert state.operation.cut_point is not None
        self._count_sent()
        line = client.connections[0]
        state.attempts += 1
        state.unanswered_attempts += 1
        try:
            line.close()
            await line.send_and_disconnect(self._build_request(state), state.operation.cut_point)
        except ConnectFailedError:
            await asyncio.sleep(_RETRY_DELAY_SECONDS)

    async def _send_with_duplicates(self, client: LoadClient, state: OperationState) -> None:
        """Send the request once, along with its concurrent duplicates."""
        self._count_sent()
        twins = state.operation.duplicates
        self.stats.twins += twins
        request = self._build_request(state)
        lines = client.connections[: 1 + twins]
        await asyncio.gather(*(self._attempt(line, state, request) for line in lines))

    async def _retry_until_acknowledged(self, client: LoadClient, state: OperationState) -> None:
        deadline = time.monotonic() + _RETRY_TIMEOUT_SECONDS
        while state.acknowledgment is None:
            if time.monotonic() > deadline:
                self._findings.add("unanswered", state.operation.idempotency_key, "no response")
                return
            await self._attempt(client.connections[0], state, self._build_request(state))

    async def _attempt(self, line: ClientConnection, state: OperationState, request: bytes) -> None:
        state.attempts += 1
        try:
            response = await line.send(request)
        except ConnectFailedError:
            state.unanswered_attempts += 1
            await asyncio.sleep(_RETRY_DELAY_SECONDS)
        except NoResponseError:
            state.unanswered_attempts += 1
        else:
            self._handle_response(state, response)
            if response.status == 503:
                await asyncio.sleep(_RETRY_DELAY_SECONDS)

    def _handle_response(self, state: OperationState, response: Response) -> None:
        name = state.operation.idempotency_key
        if response.status == 503:
            state.unanswered_attempts += 1
            return
        if response.status >= 500:
            state.unanswered_attempts += 1
            self._findings.add("failure", name, f"returned {response.status} {response.body}")
            return
        self._update_silence()
        output = parse_acknowledgment(state.operation, response)
        if output.code and output.code not in allowed_error_codes(state.operation):
            self._findings.add("rejection", name, f"rejected: {response.status} {response.body}")
            if (
                not output.is_recorded
                or output.code in _CONFLICT_CODES
                or response.status in (401, 404, 429)
            ):
                state.unanswered_attempts += 1
                return
        before = state.acknowledgment
        if before is None:
            state.acknowledgment = output
            state.succeeded_unacknowledged = response.replayed and state.unanswered_attempts > 0
        elif output != before and (output.is_recorded or before.is_recorded):
            self._findings.add("wrong values", name, f"acknowledged {before}, then {output}")

    async def _retry_unacknowledged(self) -> None:
        """Retry all operations without a response, payments before their refunds."""
        open_ones = [state for state in self._operations if state.acknowledgment is None]
        refunds = [
            operation_state
            for operation_state in open_ones
            if operation_state.operation.kind == "refund"
        ]
        await self._distribute(
            [one for one in open_ones if one.operation.kind != "refund"],
            self._retry_until_acknowledged,
        )
        possible = []
        for refund in refunds:
            if await self._can_refund(refund):
                possible.append(refund)
            else:
                self._drop_refund(refund)
        await self._distribute(possible, self._retry_until_acknowledged)

    def _drop_refund(self, refund: OperationState) -> None:
        self._operations.remove(refund)
        del self._client_ledger.operations[refund.operation.idempotency_key]
        self.stats.not_asked += 1

    async def _replay_some(self) -> None:
        repeated = [
            state
            for state in self._operations
            if state.acknowledgment and state.operation.is_replayed
        ]
        repeated += [self._client_ledger.operations[name] for name in self._plan.replayed_keys]
        altered = [
            operation_state
            for operation_state in self._operations
            if operation_state.operation.sends_conflict
            and operation_state.acknowledgment is not None
            and _binds_key(operation_state)
        ]
        self.stats.repeated, self.stats.altered = len(repeated), len(altered)
        await self._distribute(repeated, self._replay)
        await self._distribute(altered, self._send_conflicting)

    async def _replay(self, client: LoadClient, state: OperationState) -> None:
        """Require the original response, marked as a replay."""
        response = await self._send_until_final(client, self._build_request(state))
        if response is None:
            return
        self._handle_response(state, response)
        assert state.acknowledgment is not None
        if state.acknowledgment.is_recorded and not response.replayed:
            self._findings.add(
                "duplicated",
                state.operation.idempotency_key,
                f"executed again on replay: {response.body}",
            )

    async def _send_conflicting(self, client: LoadClient, state: OperationState) -> None:
        """Send different content under an idempotency key that is in use."""
        operation = state.operation
        request = self._participants.build_request(
            operation, state.original_transaction_id, altered=True
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

    def _build_request(self, state: OperationState) -> bytes:
        return self._participants.build_request(state.operation, state.original_transaction_id)

    def _count_sent(self) -> None:
        self._sent += 1
        for after, due in self._fault_triggers:
            if self._sent >= after:
                due.set()

    def _update_silence(self) -> None:
        now = time.monotonic()
        self.stats.longest_silence_seconds = max(
            self.stats.longest_silence_seconds, now - self._last_response_at
        )
        self._last_response_at = now

    def _update_stats(self) -> None:
        tally = self.stats
        for state in self._operations:
            tally.operations += 1
            if state.acknowledgment is None:
                continue
            if state.acknowledgment.succeeded:
                tally.done += 1
            else:
                tally.declines[state.acknowledgment.code] += 1
            tally.unanswered += state.unanswered_attempts > 0
            tally.done_before += state.succeeded_unacknowledged


def _binds_key(state: OperationState) -> bool:
    """Return whether the key is bound to its content.

    A declined top-up does not consume the partner reference.
    """
    assert state.acknowledgment is not None
    return state.acknowledgment.is_recorded and (
        state.acknowledgment.succeeded or state.operation.kind != "top_up"
    )
