"""Endpoints for the list of nodes and the settings."""

from tapgate.core.settings.effective import describe_settings
from tapgate.core.settings.fingerprint import Fingerprint, find_common_values, list_differences
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.nodes import Node, list_nodes
from tapgate.runtime.store.migration_plan import get_required_number, load_migrations, read_applied
from tapgate.runtime.store.postgres_releases import read_server_version
from tapgate_client.clock import format_rfc3339
from tapgate_client.schemas.nodes import (
    EffectiveSettings,
    NodeList,
    NodeRecord,
    PostgresRecord,
    SchemaRecord,
)

endpoints = Endpoints("System", "/api/v1/system", objects=ObjectAccess.NO_OBJECT, owners=NEVER)


@endpoints.get("/nodes", access=Access(roles="AS"))
async def get_nodes(request: RequestContext) -> NodeList:
    """List the nodes that use the database, and its replication state.

    A node that stops is removed immediately. A node that dies is offline after 30 seconds and is
    removed after an hour.
    """
    services = request.services
    nodes = await list_nodes(services.database)
    common = find_common_values(node.settings for node in nodes if node.is_online)
    server = (await services.health.get_status()).server
    applied = await read_applied(services.database)
    version = await read_server_version(services.database)
    return NodeList(
        data=[_to_record(node, common) for node in nodes],
        replication=None if server is None else server.replication,
        database_schema=SchemaRecord(
            newest_migration=max(applied)[:4],
            required_migration=get_required_number(applied),
            pending=[item.name for item in load_migrations() if item.name not in applied],
        ),
        postgres=PostgresRecord(
            version=str(version),
            newest_version=None if version.newest is None else str(version.newest),
            is_outdated=version.is_outdated,
        ),
    )


@endpoints.get("/settings", access=Access(roles="A"))
async def get_settings(request: RequestContext) -> EffectiveSettings:
    """Get the responding node's settings.

    The values of secrets are never included; `is_set` says whether there is one. URLs have no
    credentials.
    """
    return EffectiveSettings(data=describe_settings(request.services.settings))


def _to_record(node: Node, common: Fingerprint) -> NodeRecord:
    return NodeRecord(
        id=node.id,
        role=node.role,
        host=node.host,
        port=node.port,
        version=node.version,
        status=node.status,
        reasons=node.problems,
        # The values of a dead node may be hashed with a key that was rotated since.
        differences=list_differences(node.settings, common) if node.is_online else [],
        clock_offset=None if node.clock_offset is None else round(node.clock_offset, 3),
        started_at=format_rfc3339(node.started_at),
        last_seen=format_rfc3339(node.last_seen),
        newest_migration=node.newest_migration,
    )
