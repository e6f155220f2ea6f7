"""Gateway process metrics other than request metrics."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from tapgate.business.payments.books import outgoing
from tapgate.business.payments.books.book_metrics import BookMetrics
from tapgate.business.reporting.task_metrics import TaskMetrics
from tapgate.core.settings import Settings
from tapgate.events.audit import chain
from tapgate.events.notifications import notification_messages, receipts
from tapgate.events.notifications.provider_warnings import ProviderWarningMetrics
from tapgate.events.webhooks import delivery_queue
from tapgate.events.webhooks.endpoint_metrics import EndpointMetrics
from tapgate.http.backlog_metrics import BacklogMetrics
from tapgate.http.certificate_metrics import CertificateMetrics
from tapgate.http.metrics import MetricSource
from tapgate.http.process_metrics import ProcessMetrics
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.ledger.engine.group_commit import Ledger
from tapgate.ledger.engine.metrics import LedgerMetrics
from tapgate.runtime.background import run_background_tasks
from tapgate.runtime.store.database import Database
from tapgate_client.schemas.nodes import NodeRole

BACKLOG_QUERIES: Final = (
    delivery_queue.BACKLOG_SQL,
    notification_messages.BACKLOG_SQL,
    receipts.BACKLOG_SQL,
    chain.BACKLOG_SQL,
    outgoing.BACKLOG_SQL,
)


@contextlib.asynccontextmanager
async def open_metrics(
    settings: Settings,
    throttle: Throttle,
    ledger: Ledger,
    ledger_metrics: LedgerMetrics,
    database: Database,
    queue_database: Database,
) -> AsyncIterator[list[MetricSource]]:
    """Open the metrics of a process, besides those of its requests and its ledger."""
    pools = {"requests": database.pool, "queue": queue_database.pool, "ledger": ledger.pool}
    process_metrics = ProcessMetrics(
        settings, NodeRole.GATEWAY, pools, throttle, lambda: ledger.queue_length
    )
    with contextlib.closing(process_metrics):
        async with run_background_tasks(process_metrics.run()):
            yield [
                ledger_metrics,
                process_metrics,
                BacklogMetrics(queue_database, BACKLOG_QUERIES),
                ProviderWarningMetrics(queue_database),
                EndpointMetrics(queue_database),
                TaskMetrics(queue_database),
                BookMetrics(queue_database, settings.book_peers),
                CertificateMetrics(settings, queue_database),
            ]
