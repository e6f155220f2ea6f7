"""Node registry: settings and clock comparison, expiry, and the list in the API."""

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from structlog.testing import capture_logs

from harness import Harness
from tapgate import VERSION
from tapgate.core.settings import Settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.core.settings.fingerprint import compute_fingerprint
from tapgate.http.api.services import Services
from tapgate.messenger import startup
from tapgate.runtime import nodes as nodes_module
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.nodes import Node, NodeRegistry, compute_reference_offset, list_nodes
from tapgate.runtime.store.postgres_programs import read_embedded_version
from tapgate.runtime.store.server_status import get_server_status
from tapgate_client.schemas.nodes import NodeRole

NODES_PATH = "/api/v1/system/nodes"


def build_node(
    services: Services, role: NodeRole = NodeRole.GATEWAY, **changes: Any
) -> NodeRegistry:
    """Build the registry of another node on the same database."""
    changes = {"node_id": "other", "port": 8100, **changes}
    settings = services.settings.replace(**changes)
    health = HealthMonitor(settings, partial(get_server_status, services.database))
    return NodeRegistry(settings, role, services.database, health)


async def list_addresses(services: Services) -> list[str]:
    return [node.address.partition(":")[2] for node in await list_nodes(services.database)]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"jwt_secret": "x" * 40}, "TAPGATE_JWT_SECRET"),
        ({"timezone": ZoneInfo("Africa/Lagos")}, "TAPGATE_TIMEZONE"),
        ({"environment": "testing"}, "TAPGATE_ENVIRONMENT"),
        (
            {"service_secrets": {"messenger": "x" * 40, "gateway": "y" * 40}},
            r"TAPGATE_SERVICE_SECRETS \(gateway\) and TAPGATE_SERVICE_SECRETS \(messenger\)",
        ),
    ],
)
async def test_node_with_a_different_critical_setting_does_not_start(
    services: Services, changes: dict[str, Any], name: str
) -> None:
    assert await services.nodes.join() == []
    with pytest.raises(SettingsError, match=rf"^{name} must not differ from the gateway \S+:8000"):
        await build_node(services, **changes).join()
    assert await list_addresses(services) == ["8000"]
    (line,) = await build_node(services, **changes, settings_mismatch="warn").join()
    assert line.startswith("Warning: TAPGATE_")
    assert await list_addresses(services) == ["8000", "8100"]


async def test_different_setting_that_breaks_nothing_is_a_warning(services: Services) -> None:
    await services.nodes.join()
    (line,) = await build_node(services, rate_limit=7, receipts="off").join()
    assert line.startswith("Warning: TAPGATE_RATE_LIMIT, TAPGATE_RECEIPTS differ from the gateway")


async def test_messenger_is_compared_only_in_the_settings_it_shares(services: Services) -> None:
    await services.nodes.join()
    settings = services.settings.replace(node_id="m", jwt_secret="z" * 40)
    url = str(settings.database_url)
    lines = [line async for line in startup.prepare(settings, url)]
    assert not any("differ" in line for line in lines)
    secrets = {**settings.service_secrets, "messenger": "z" * 40}
    other = settings.replace(node_id="n", messenger_port=9000, service_secrets=secrets)
    with pytest.raises(SettingsError, match=r"TAPGATE_SERVICE_SECRETS \(messenger\) must not"):
        [line async for line in startup.prepare(other, url)]


async def test_killed_node_can_restart_with_a_new_secret(services: Services) -> None:
    await services.nodes.join()
    restarted = build_node(services, port=services.settings.port, jwt_secret="x" * 40)
    assert await restarted.join() == []


async def test_of_two_different_nodes_that_start_together_one_is_refused(
    services: Services,
) -> None:
    nodes = [
        build_node(
            services, node_id=f"node-{number}", port=8100 + number, jwt_secret=f"{number}" * 40
        )
        for number in range(6)
    ]
    results = await asyncio.gather(*(node.join() for node in nodes), return_exceptions=True)
    assert sum(isinstance(result, SettingsError) for result in results) == 5
    assert len(await list_addresses(services)) == 1


def test_fingerprint_contains_keyed_hashes_only(settings: Settings) -> None:
    first = compute_fingerprint(settings, NodeRole.GATEWAY)
    text = repr(first)
    for secret in (settings.jwt_secret, settings.secret_key, *settings.service_secrets.values()):
        assert secret not in text
    other_key = settings.replace(secret_key="k" * 40)
    second = compute_fingerprint(other_key, NodeRole.GATEWAY)
    assert first.keys() == second.keys()
    # A time zone has few possible values: without the key, no guess can be verified.
    assert all(first[name] != second[name] for name in first)


async def expire(services: Services, node_id: str, interval: str) -> None:
    await services.database.execute(
        f"UPDATE nodes SET last_seen = last_seen - interval '{interval}' WHERE id = $1", node_id
    )


async def test_silent_node_is_offline_and_then_removed(services: Services) -> None:
    other = build_node(services, jwt_secret="x" * 40)
    await other.join()
    await expire(services, "other", "31 seconds")
    await services.nodes.join()  # an offline node does not matter
    await services.nodes.report()
    assert [node.is_online for node in await list_nodes(services.database)] == [False, True]
    await expire(services, "other", "1 hour")
    await services.nodes.report()
    assert await list_addresses(services) == ["8000"]


async def test_stopped_node_is_removed(services: Services) -> None:
    async with services.nodes.remove_on_exit():
        await services.nodes.report()
        assert await list_addresses(services) == ["8000"]
    assert await list_addresses(services) == []


async def test_draining_node_is_not_ready_in_the_registry(services: Services) -> None:
    await services.nodes.report()
    services.health.is_draining = True
    await services.nodes.report()
    (node,) = await list_nodes(services.database)
    assert (node.status, node.problems) == ("not_ready", ["draining"])


async def test_node_logs_that_its_settings_differ(services: Services) -> None:
    for number in range(2):
        await build_node(services, node_id=f"node-{number}", port=8100 + number).report()
    other = build_node(services, jwt_secret="x" * 40)
    with capture_logs() as lines:
        await other.report()
        await other.report()
    events = [line for line in lines if line["event"] == "nodes.settings_differ"]
    assert [line["settings"] for line in events] == [["TAPGATE_JWT_SECRET"]]


def build_record(host: str, offset: float | None) -> Node:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    return Node(
        id=host, role="gateway", host=host, port=8000, version="1", settings={}, problems=[],
        clock_offset=offset, newest_migration=None, started_at=now, last_seen=now, is_online=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("offsets", "reference"),
    [
        ([], 0),
        ([("a", 360.0)], 0),  # one clock against the database's: the database is right
        ([("a", 360.0), ("a", 360.0)], 0),  # two nodes on one host have one clock
        ([("a", 360.0), ("b", 0.1)], 0.1),
        ([("a", 360.0), ("b", 360.2)], 360.0),  # the database's clock is wrong
        ([("a", -90.0), ("b", None), ("c", -90.1), ("d", 0.0)], 0),
    ],
)
def test_majority_clock_is_the_reference(
    offsets: list[tuple[str, float | None]], reference: float
) -> None:
    nodes = [build_record(host, offset) for host, offset in offsets]
    assert compute_reference_offset(nodes) == reference


async def test_clock_error_of_the_database_does_not_stop_all_nodes(services: Services) -> None:
    ahead = partial(get_server_status, services.database, _get_time_ahead)
    health = HealthMonitor(services.settings, ahead)
    assert not (await health.get_readiness()).ready
    health.reference_offset = compute_reference_offset(
        [build_record("a", 600.0), build_record("b", 600.0)]
    )
    health.status.max_age = 0
    assert (await health.get_readiness()).ready


def _get_time_ahead() -> float:
    return datetime.now(UTC).timestamp() + 600


async def test_settings_of_an_offline_node_are_not_compared(
    services: Services, harness: Harness
) -> None:
    await build_node(services, jwt_secret="x" * 40).report()
    await services.nodes.report()
    await expire(services, "other", "10 minutes")
    admin = await harness.create_admin("S")
    body = (await harness.client.get(NODES_PATH, auth=admin)).json()
    rows = {row["id"]: row for row in body["data"]}
    assert (rows["other"]["status"], rows["other"]["differences"]) == ("offline", [])


async def test_list_shows_differences_and_clocks(services: Services, harness: Harness) -> None:
    await build_node(services, node_id="b", port=8101).report()
    await build_node(services, node_id="c", port=8102, role=NodeRole.MESSENGER).report()
    await build_node(services, jwt_secret="x" * 40).report()
    await services.nodes.report()
    admin = await harness.create_admin("S")
    body = (await harness.client.get(NODES_PATH, auth=admin)).json()
    assert body["replication"]["mode"] == "none"
    assert body["postgres"]["version"] == str(read_embedded_version())
    rows = {row["id"]: row for row in body["data"]}
    assert rows["other"]["differences"] == ["TAPGATE_JWT_SECRET"]
    assert rows["b"]["differences"] == rows["c"]["differences"] == []
    assert rows["c"]["role"] == "messenger"
    assert {row["status"] for row in rows.values()} == {"ready"}
    assert all(abs(row["clock_offset"]) < 60 for row in rows.values())
    assert services.settings.jwt_secret not in str(body)
    for role in "CF":
        denied = await harness.client.get(NODES_PATH, auth=await harness.create_admin(role))
        assert denied.status_code == 403


async def test_metrics_show_health(services: Services, harness: Harness) -> None:
    await build_node(services, node_id="b", port=8101).report()
    await build_node(services, node_id="a", port=8102, rate_limit=1).report()
    await services.nodes.report()
    lines = (await harness.client.get("/metrics")).text.splitlines()
    assert {
        "tapgate_ready 1.0",
        'tapgate_nodes{role="gateway"} 3.0',
        'tapgate_nodes{role="messenger"} 0.0',
        "tapgate_node_setting_differences 0.0",
        'tapgate_database_replication{mode="none"} 1.0',
        'tapgate_database_replication{mode="synchronous"} 0.0',
    } <= set(lines)


async def test_messenger_registers_with_the_settings_of_its_workers(services: Services) -> None:
    async for _ in startup.prepare(services.settings, str(services.settings.database_url)):
        pass
    settings = startup.add_development_form_key(services.settings)
    health = HealthMonitor(settings, partial(get_server_status, services.database))
    registry = NodeRegistry(settings, NodeRole.MESSENGER, services.database, health)
    await registry.report()
    assert registry.list_differences() == []


async def test_health_names_the_releases_of_the_nodes_while_they_differ(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = harness.services
    await services.nodes.report()
    assert (await harness.get("/health")).json()["warnings"] == []
    for number, version in enumerate(["1.1.0", VERSION]):
        monkeypatch.setattr(nodes_module, "VERSION", version)
        await build_node(services, node_id=f"other-{number}", port=8100 + number).report()
    await services.nodes.report()
    response = await harness.get("/health")
    expected = {
        "code": "mixed_versions",
        "message": f"Nodes run different releases: 1 with 1.1.0, 2 with {VERSION}.",
    }
    assert (response.status_code, response.json()["warnings"]) == (200, [expected])
    await services.database.execute("DELETE FROM nodes WHERE version = '1.1.0'")
    await services.nodes.report()
    assert (await harness.get("/health")).json()["warnings"] == []
