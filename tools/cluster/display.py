"""What `make cluster` shows: the URLs, and the state of each node."""

import asyncio
from collections.abc import Iterator, Mapping

from rich.table import Table

from tools.cluster import configuration
from tools.cluster.cluster import Cluster
from tools.cluster.layout import ADMIN_EMAIL, GATEWAYS, MESSENGERS, REPLICAS
from tools.cluster.status import StatusReader

_DOWN = "down"


def list_urls(cluster: Cluster) -> list[str]:
    layout = cluster.layout
    gateway = configuration.build_url(layout, GATEWAYS)
    database = configuration.build_database_url(layout)
    return [
        f"  Gateways:     {gateway}",
        f"  Console:      {gateway}/console ({ADMIN_EMAIL}, password {layout.admin_password})",
        f"  Messengers:   {configuration.build_url(layout, MESSENGERS)}",
        f"  PostgreSQL:   {database}",
        f"  Standbys:     port {layout.ports[REPLICAS]}",
        f"  Books:        TAPGATE_DATABASE_URL={database} tapgate verify",
        f"  Logs:         {cluster.folder}/*/log",
        "Press Ctrl-C to stop.",
    ]


async def read_states(cluster: Cluster, status: StatusReader) -> dict[str, str]:
    """Return the state of each node by name."""
    members = {member.name: member for member in await status.list_members()}
    names = [name for name in cluster.nodes if name not in members]
    checked = await asyncio.gather(*(_read_state(cluster, status, name) for name in names))
    states = dict(zip(names, checked, strict=True))
    for name, member in members.items():
        lag = f", {member.lag} bytes behind" if member.lag not in (None, 0) else ""
        role = member.role.replace("_", " ")
        states[name] = f"{role}, {member.state}, timeline {member.timeline}{lag}"
        if not cluster.nodes[name].is_running:
            states[name] = _DOWN
    return {name: states[name] for name in cluster.nodes}


async def _read_state(cluster: Cluster, status: StatusReader, name: str) -> str:
    if not cluster.nodes[name].is_running:
        return _DOWN
    if name == "valkey":
        is_healthy = await status.is_listening(name)
    elif name == "haproxy":
        is_healthy = await status.is_healthy(GATEWAYS)
    elif name.startswith("postgres"):
        return "starting"
    else:
        is_healthy = await status.is_healthy(name)
    return "healthy" if is_healthy else "unhealthy"


def render_table(cluster: Cluster, states: Mapping[str, str]) -> Table:
    table = Table("Node", "State", "Port", "PID", "Starts")
    for name, node in cluster.nodes.items():
        port = cluster.layout.ports.get(name, "")
        color = "green" if states[name].startswith(("healthy", "leader")) else ""
        color = "red" if states[name] in (_DOWN, "unhealthy") else color
        table.add_row(
            name, states[name], str(port), str(node.pid), str(node.start_count), style=color
        )
    return table


def list_changes(previous: Mapping[str, str], states: Mapping[str, str]) -> Iterator[str]:
    for name, state in states.items():
        before = previous.get(name, "").partition(", timeline")[0]
        if state.partition(", timeline")[0] != before:
            yield f"{name}: {state}"
