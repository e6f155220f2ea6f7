"""Faults of a cluster: nodes killed or paused, wrong clocks, full disks, cut and slow networks."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, Literal

import msgspec

from tools.cluster.configuration import LEADER_TTL_SECONDS
from tools.cluster.processes import NodeProcess
from tools.cluster.status import LEADER, SYNC_STANDBY
from torture.client_connection import ClientConnection
from torture.cluster import isolation
from torture.cluster.target import MAX_CLOCK_OFFSET, STANDBYS, ClusterTarget
from torture.installation import kill
from torture.plan import Fault, RoundPlan, build_round

#: Load operations per second.
RATE: Final = 15.0
_PAUSE_SECONDS: Final = LEADER_TTL_SECONDS + 2.0
#: Seconds of load before a fault.
_LEAD_SECONDS: Final = 2.0
_STOP_TIMEOUT_SECONDS: Final = 60.0
#: A gateway that cannot commit is not ready within 3 seconds; the watch needs up to 0.1 more.
_NOTICE_SECONDS: Final = 3.1
#: More than the gateways tolerate.
_CLOCK_STEP_SECONDS: Final = 2.0 * MAX_CLOCK_OFFSET
_CACHE_DELAY_SECONDS: Final = 0.06


class FaultKind(msgspec.Struct, frozen=True, kw_only=True):
    action: Literal["kill", "pause", "crash", "restart", "step clock", "fill disk", "cut", "delay"]
    role: str  # of the node, or the kind of node
    is_all: bool = False  # all nodes of this kind or role
    duration: float = 0.0  # seconds until the node is resumed or started again
    load_seconds: float = 10.0  # seconds of load after the start of the fault
    #: Seconds within which `/ready` of all gateways must change: none can commit a payment.
    notice_seconds: float | None = None
    #: Seconds without load before and after the round. The reconciliation finds new transactions by
    #: their IDs, which begin with the time, also that of a wrong clock.
    quiet_seconds: float = 0.0
    #: Whether the fault needs namespaces of its own: see `isolation.py`.
    is_isolated: bool = False


#: A killed leader or standby stays down, as if its machine was lost. Other killed processes are
#: started again immediately, as by a service manager.
FAULT_KINDS: Final = {
    "kill a gateway": FaultKind(action="kill", role="gateway"),
    "restart a gateway": FaultKind(action="restart", role="gateway", load_seconds=12),
    "kill the leader": FaultKind(
        action="kill", role=LEADER, duration=_PAUSE_SECONDS, load_seconds=32
    ),
    "crash the leader's PostgreSQL": FaultKind(action="crash", role=LEADER, load_seconds=15),
    "kill the standby": FaultKind(action="kill", role=SYNC_STANDBY, duration=6),
    "kill both standbys": FaultKind(
        action="kill",
        role=STANDBYS,
        is_all=True,
        duration=8,
        load_seconds=16,
        notice_seconds=_NOTICE_SECONDS,
    ),
    "pause both standbys": FaultKind(
        action="pause",
        role=STANDBYS,
        is_all=True,
        duration=8,
        load_seconds=16,
        notice_seconds=_NOTICE_SECONDS,
    ),
    "kill HAProxy": FaultKind(action="kill", role="haproxy", duration=3, load_seconds=8),
    "step a gateway's clock": FaultKind(
        action="step clock",
        role="gateway",
        duration=6,
        load_seconds=10,
        quiet_seconds=_CLOCK_STEP_SECONDS,
    ),
    "fill the database disk": FaultKind(
        action="fill disk", role=LEADER, duration=10, load_seconds=20, is_isolated=True
    ),
    "cut a gateway from the database": FaultKind(
        action="cut", role="gateway-3", duration=10, load_seconds=16, is_isolated=True
    ),
    "slow Valkey by 60 ms": FaultKind(action="delay", role="valkey", duration=8, load_seconds=10),
    "kill Valkey": FaultKind(action="kill", role="valkey", duration=3, load_seconds=7),
    "kill an etcd member": FaultKind(action="kill", role="etcd", duration=3, load_seconds=7),
    "kill all etcd members": FaultKind(
        action="kill", role="etcd", is_all=True, duration=8, load_seconds=14
    ),
    "kill a messenger": FaultKind(action="kill", role="messenger", load_seconds=7),
    **{
        f"pause {name}": FaultKind(
            action="pause",
            role=role,
            is_all=role == "etcd",
            duration=_PAUSE_SECONDS,
            load_seconds=_PAUSE_SECONDS + 6,
        )
        for name, role in (
            ("a gateway", "gateway"),
            ("the leader", LEADER),
            ("the standby", SYNC_STANDBY),
            ("Valkey", "valkey"),
            ("all etcd members", "etcd"),
            ("a messenger", "messenger"),
        )
    },
}


def build_cluster_round(
    seed: int, number: int, *, kinds: Sequence[str] = (), rate: float = RATE
) -> RoundPlan:
    """Build a round with one fault; every kind of fault occurs once before any occurs again.

    `kinds` are the kinds to choose from, in their order; all kinds are shuffled.
    """
    chosen = _choose_kind(seed, number, kinds)
    fault = Fault(
        kind=chosen,
        after_operations=int(_LEAD_SECONDS * rate),
        delay=0.0,
        choice=random.Random(f"{seed} choice {number}").randrange(1_000),
        duration=FAULT_KINDS[chosen].duration,
    )
    plan = build_round(
        seed,
        number,
        operations=_count_operations(chosen, rate),
        previous_operations=_count_operations(_choose_kind(seed, number - 1, kinds), rate),
    )
    return msgspec.structs.replace(plan, faults=[fault])


def _choose_kind(seed: int, number: int, kinds: Sequence[str]) -> str:
    order = list(kinds or FAULT_KINDS)
    if not kinds:
        random.Random(f"{seed} faults").shuffle(order)
    return order[(number - 1) % len(order)]


def _count_operations(kind: str, rate: float) -> int:
    """Return the number of operations without refunds, which add about a quarter."""
    return int((_LEAD_SECONDS + FAULT_KINDS[kind].load_seconds) * rate * 0.8)


@contextmanager
def _step_clock(target: ClusterTarget, node: str, fault: Fault) -> Iterator[None]:
    """Move a clock ahead or back, and correct it in one step."""
    seconds = _CLOCK_STEP_SECONDS * random.Random(fault.choice).choice((-1, 1))
    target.set_clock_error(node, seconds)
    try:
        yield
    finally:
        target.set_clock_error(node, 0)


@contextmanager
def _fill_disk(target: ClusterTarget, node: str, fault: Fault) -> Iterator[None]:
    disk = target.get_disk(node)
    try:
        disk.fill()
        yield
    finally:
        disk.free()


@contextmanager
def _cut_network(target: ClusterTarget, node: str, fault: Fault) -> Iterator[None]:
    isolation.cut_database_address()
    try:
        yield
    finally:
        isolation.restore_database_address()


@contextmanager
def _delay_cache(target: ClusterTarget, node: str, fault: Fault) -> Iterator[None]:
    target.cache_relay.delay = _CACHE_DELAY_SECONDS
    try:
        yield
    finally:
        target.cache_relay.delay = 0.0


#: Faults that begin and end, without a signal to a process.
_SCOPES: Final = {
    "step clock": _step_clock,
    "fill disk": _fill_disk,
    "cut": _cut_network,
    "delay": _delay_cache,
}


class ClusterFaultInjector:
    def __init__(self, target: ClusterTarget, connections: Sequence[ClientConnection]) -> None:
        self._target = target
        self.needs_restart = False

    async def inject(self, fault: Fault) -> None:
        nodes = await self._find_nodes(fault)
        self._target.readiness.start_fault()
        self._target.fault_started.set()
        try:
            await self._run(fault, nodes)
        finally:
            self._target.readiness.end_fault()

    async def _run(self, fault: Fault, nodes: Sequence[NodeProcess]) -> None:
        action = FAULT_KINDS[fault.kind].action
        if action == "pause":
            await _pause(nodes, fault.duration)
        elif action == "restart":
            await _restart(nodes)
        elif action == "crash":
            kill([postmaster for node in nodes if (postmaster := node.find_postmaster())])
        elif action in _SCOPES:
            with ExitStack() as stack:
                for node in nodes:
                    stack.enter_context(_SCOPES[action](self._target, node.name, fault))
                await asyncio.sleep(fault.duration)
        else:
            await _take_down(nodes, fault.duration)

    async def _find_nodes(self, fault: Fault) -> list[NodeProcess]:
        kind, nodes = FAULT_KINDS[fault.kind], self._target.cluster.nodes
        if kind.is_all:
            return [nodes[name] for name in await self._target.list_nodes(kind.role)]
        return [nodes[await self._target.find_node(kind.role, fault.choice)]]


async def _pause(nodes: Sequence[NodeProcess], seconds: float) -> None:
    try:
        for node in nodes:
            node.suspend()
        await asyncio.sleep(seconds)
    finally:
        for node in nodes:
            node.resume()


async def _restart(nodes: Sequence[NodeProcess]) -> None:
    """Stop gracefully, as in a rolling upgrade, and start again."""
    for node in nodes:
        node.terminate()
        await node.wait(_STOP_TIMEOUT_SECONDS)
        node.start()


async def _take_down(nodes: Sequence[NodeProcess], seconds: float) -> None:
    for node in nodes:
        node.is_wanted = False
    # In threads: waiting for the end of the processes must not stop the load.
    await asyncio.gather(*(asyncio.to_thread(node.kill) for node in nodes))
    try:
        await asyncio.sleep(seconds)
    finally:
        for node in nodes:
            node.start()
