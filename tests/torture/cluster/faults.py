"""Faults of whole nodes: killed, or paused for longer than the leader's lease lasts."""

import asyncio
import random
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from tools.cluster.configuration import LEADER_TTL_SECONDS
from tools.cluster.processes import NodeProcess
from tools.cluster.status import LEADER, SYNC_STANDBY
from torture.client_connection import ClientConnection
from torture.cluster.target import ClusterTarget
from torture.installation import kill
from torture.plan import Fault, RoundPlan, build_round

#: Load operations per second.
RATE: Final = 15.0
_PAUSE_SECONDS: Final = LEADER_TTL_SECONDS + 2.0
#: Seconds of load before a fault.
_LEAD_SECONDS: Final = 2.0
_STOP_TIMEOUT_SECONDS: Final = 60.0


class FaultKind(msgspec.Struct, frozen=True, kw_only=True):
    action: Literal["kill", "pause", "crash", "restart"]
    role: str  # of the node, or the kind of node
    is_all: bool = False  # all nodes of this kind
    duration: float = 0.0  # seconds until the node is resumed or started again
    load_seconds: float = 10.0  # seconds of load after the start of the fault


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
    seed: int, number: int, *, kind: str | None = None, rate: float = RATE
) -> RoundPlan:
    """Build a round with one fault; every kind of fault occurs once before any occurs again."""
    chosen = kind or _choose_kind(seed, number)
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
        previous_operations=_count_operations(kind or _choose_kind(seed, number - 1), rate),
    )
    return msgspec.structs.replace(plan, faults=[fault])


def _choose_kind(seed: int, number: int) -> str:
    order = list(FAULT_KINDS)
    random.Random(f"{seed} faults").shuffle(order)
    return order[(number - 1) % len(order)]


def _count_operations(kind: str, rate: float) -> int:
    """Return the number of operations without refunds, which add about a quarter."""
    return int((_LEAD_SECONDS + FAULT_KINDS[kind].load_seconds) * rate * 0.8)


class ClusterFaultInjector:
    def __init__(self, target: ClusterTarget, connections: Sequence[ClientConnection]) -> None:
        self._target = target
        self.needs_restart = False

    async def inject(self, fault: Fault) -> None:
        nodes = await self._find_nodes(fault)
        self._target.fault_started.set()
        action = FAULT_KINDS[fault.kind].action
        if action == "pause":
            await _pause(nodes, fault.duration)
        elif action == "restart":
            await _restart(nodes)
        elif action == "crash":
            kill([postmaster for node in nodes if (postmaster := node.find_postmaster())])
        else:
            await _take_down(nodes, fault.duration)

    async def _find_nodes(self, fault: Fault) -> list[NodeProcess]:
        kind, nodes = FAULT_KINDS[fault.kind], self._target.cluster.nodes
        if kind.is_all:
            return [node for name, node in nodes.items() if name.startswith(kind.role)]
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
