"""Platform nodes and database replication."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.health import NotReadyReason, ReplicationMode
from tapgate_client.schemas.nodes import NodeStatus
from tapgate_client.schemas.provider_warnings import ProviderWarningKind

pages = Pages()

_REASON_LABELS: Final = {
    NotReadyReason.STARTING: "Starting",
    NotReadyReason.DRAINING: "Shutting down",
    NotReadyReason.DATABASE_UNAVAILABLE: "Database unavailable",
    NotReadyReason.DATABASE_READ_ONLY: "Database read-only",
    NotReadyReason.DATABASE_DISK_FULL: "Database disk full",
    NotReadyReason.LEDGER_LOCKED: "Ledger locked",
    NotReadyReason.COMMITS_STALLED: "Commits stalled",
    NotReadyReason.DISK_FULL: "Disk full",
    NotReadyReason.CLOCK_OFFSET: "Wrong clock",
    NotReadyReason.NO_SYNCHRONOUS_STANDBY: "No synchronous standby",
}
_REPLICATION_TEXTS: Final = {
    ReplicationMode.SYNCHRONOUS: "Every payment is on a standby before it is confirmed.",
    ReplicationMode.WAITING: "Too few standbys confirm commits, so payments wait for them.",
    ReplicationMode.ASYNCHRONOUS: "If the primary server is lost, its last payments are lost too.",
    ReplicationMode.NONE: "No standby is connected. If the server is lost, restore a backup.",
    ReplicationMode.UNKNOWN: "The database user cannot read the state. Grant it pg_monitor.",
}
_WARNING_LABELS: Final = {
    ProviderWarningKind.TEMPLATE: "Template",
    ProviderWarningKind.ACCOUNT: "Account",
    ProviderWarningKind.PHONE_NUMBER: "Phone number",
}
#: Statuses as the states that the templates color.
_STATES: Final = {
    NodeStatus.READY: ("active", "Ready"),
    NodeStatus.NOT_READY: ("failed", "Not ready"),
    NodeStatus.OFFLINE: ("lost", "Offline"),
}


@pages.get("/console/nodes")
async def show_nodes(request: PageRequest) -> Reply[bytes]:
    nodes = await request.get("/api/v1/system/nodes")
    warnings = await request.get("/api/v1/messages/provider-warnings")
    return request.render(
        "nodes/nodes.html",
        nodes=nodes["data"],
        replication=nodes["replication"],
        schema=nodes["database_schema"],
        postgres=nodes["postgres"],
        warnings=warnings["data"],
        warning_labels=_WARNING_LABELS,
        states=_STATES,
        reason_labels=_REASON_LABELS,
        replication_texts=_REPLICATION_TEXTS,
    )
