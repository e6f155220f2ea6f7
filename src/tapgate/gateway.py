"""Gateway: assembly of all components, and the entry point of a worker process.

`create_app` adds the endpoints to the services of a process, and `prepare_installation` runs at
every start, before the worker processes.
"""

import dataclasses
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from tapgate import private_files
from tapgate.admin import operations as admin_operations
from tapgate.admin import queries as admin_queries
from tapgate.admin import routes as admin
from tapgate.admin.account import routes as account
from tapgate.admin.api_keys import routes as api_keys
from tapgate.agents import money_routes as agent_money
from tapgate.agents import routes as agents
from tapgate.api.app import App, Site
from tapgate.api.openapi import render_openapi_document
from tapgate.api.report_calls import ReportClient
from tapgate.api.report_server import ReportServer
from tapgate.api.services import Services
from tapgate.api.system import build_system_endpoints
from tapgate.approvals import routes as approvals
from tapgate.approvals.execution import ApprovalWorker
from tapgate.audit import routes as audit
from tapgate.audit.chain import Sealer
from tapgate.cards import proof_routes as card_proofs
from tapgate.cards import routes as cards
from tapgate.compliance.account_rules import routes as account_rules
from tapgate.compliance.alerts import routes as alerts
from tapgate.compliance.check import routes as compliance_check
from tapgate.compliance.rules import routes as compliance_rules
from tapgate.console.console import build_console
from tapgate.event_records import EVENT_RECORD_LOADERS, WEBHOOK_EVENTS
from tapgate.fees import routes as fees
from tapgate.gateway_services import open_services
from tapgate.general_ledger import routes as general_ledger
from tapgate.guide.site import GuideSite
from tapgate.http import worker
from tapgate.http.connection_limit import ConnectionLimit
from tapgate.http.endpoint import Endpoint, Endpoints
from tapgate.ledger import rules
from tapgate.ledger.maintenance import LedgerMaintenance, ensure_partitions
from tapgate.notifications import message_statuses
from tapgate.notifications.messages import MessageSender
from tapgate.notifications.receipts import ReceiptWorker
from tapgate.notifications.retention import RetentionWorker
from tapgate.partners import routes as partners
from tapgate.partners import top_up_routes as top_ups
from tapgate.pos import routes as pos
from tapgate.processors import key_routes as signing_keys
from tapgate.processors import routes as processors
from tapgate.processors.terminals import routes as terminals
from tapgate.reporting import node_routes as nodes
from tapgate.reporting import routes as overview
from tapgate.reporting.rollups import RollupCompactor
from tapgate.runtime import logs
from tapgate.runtime.background import run_background_tasks
from tapgate.runtime.handover import REPORT_SOCKET_VARIABLE, REPORT_WORKER_VARIABLE
from tapgate.search import routes as search
from tapgate.settings import Settings, SettingsError, load_settings
from tapgate.store.installation import check_installation
from tapgate.subscribers import routes as subscribers
from tapgate.subscribers.kyc_documents import routes as kyc_documents
from tapgate.support import operations as support_operations
from tapgate.support import routes as support
from tapgate.tap_page.site import TapPage
from tapgate.transactions import routes as transactions
from tapgate.wallets import routes as wallets
from tapgate.wallets.statements import operations as statement_operations
from tapgate.wallets.statements import routes as statements
from tapgate.webhooks import routes as webhooks
from tapgate.webhooks.worker import WebhookWorker

ENDPOINT_GROUPS: Final[tuple[Endpoints, ...]] = (
    subscribers.endpoints,
    kyc_documents.endpoints,
    cards.endpoints,
    card_proofs.endpoints,
    wallets.endpoints,
    pos.pos_endpoints,
    pos.in_app_endpoints,
    processors.endpoints,
    terminals.endpoints,
    signing_keys.endpoints,
    partners.endpoints,
    top_ups.endpoints,
    agents.endpoints,
    agent_money.endpoints,
    statements.endpoints,
    transactions.endpoints,
    fees.fee_endpoints,
    fees.commission_endpoints,
    compliance_check.endpoints,
    alerts.endpoints,
    compliance_rules.endpoints,
    account_rules.endpoints,
    support.endpoints,
    approvals.rule_endpoints,
    approvals.endpoints,
    admin.endpoints,
    account.endpoints,
    api_keys.endpoints,
    audit.endpoints,
    webhooks.endpoints,
    message_statuses.endpoints,
    overview.endpoints,
    search.endpoints,
    nodes.endpoints,
    general_ledger.endpoints,
)

#: Currency of the amounts in the OpenAPI document, if no installation is described.
_EXAMPLE_CURRENCY: Final = "SLE"
_DEVELOPMENT_ADMIN_EMAIL: Final = "admin@example.com"

#: Fills a new installation, and yields lines for the operator.
FillInstallation = Callable[[Services, str], AsyncIterator[str]]


def list_endpoints() -> list[Endpoint]:
    """Return all endpoints of the gateway. System endpoints, such as health, come last."""
    no_app = cast(App, None)  # the endpoints are only described, never called
    return [*chain.from_iterable(ENDPOINT_GROUPS), *build_system_endpoints(no_app)]


def build_openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the whole API."""
    rendered = render_openapi_document(list_endpoints(), _EXAMPLE_CURRENCY, WEBHOOK_EVENTS)
    document: dict[str, Any] = msgspec.json.decode(rendered)
    return document


def create_app(services: Services, extra_sites: Iterable[Site] = ()) -> App:
    sites: tuple[Site, ...] = (build_console(), GuideSite(), TapPage(), *extra_sites)
    return App(services, chain.from_iterable(ENDPOINT_GROUPS), sites, WEBHOOK_EVENTS)


async def prepare_installation(
    settings: Settings, database_url: str, fill: FillInstallation | None = None
) -> AsyncIterator[str]:
    """Prepare the installation before its workers start; yield lines for the operator.

    Checks that the secret key and currency match the database, and ensures that an admin exists. A
    new installation also gets the default rules, the platform accounts and the data of `fill`.
    """
    breached = settings.breached_passwords
    if breached is not None and not breached.is_file():
        raise SettingsError(f"TAPGATE_BREACHED_PASSWORDS: {breached} is not a file")
    async with open_services(settings, database_url) as services:
        await require_same_installation(services)
        for line in [*await services.nodes.join(), *await services.throttle.list_warnings()]:
            yield line
        await ensure_partitions(services.database, services.clock())
        async with services.transaction() as tx:
            await rules.insert_defaults(tx, settings.currency, services.new_id)
        is_new = await _is_new_installation(services)
        for line in await _ensure_admin_exists(services):
            yield line
        if is_new and fill is not None:
            async for line in fill(services, database_url):
                yield line


async def _is_new_installation(services: Services) -> bool:
    if await admin_queries.has_system_admin(services.database):
        return False
    return not await services.database.fetchval("SELECT EXISTS (SELECT FROM subscribers)")


async def require_same_installation(services: Services) -> None:
    """Require the database's secret key and currency. On first start, store them."""
    await check_installation(
        services.database,
        secret_fingerprint=services.vault.key_id,
        currency=services.settings.currency,
    )


async def create_first_admin(services: Services, email: str, password: str) -> bool:
    password_hash = await services.authenticator.passwords.hash(password)
    async with services.transaction() as tx:
        return await admin_operations.create_first_admin(
            tx, email=email, password_hash=password_hash
        )


async def _ensure_admin_exists(services: Services) -> list[str]:
    settings = services.settings
    if await admin_queries.has_system_admin(services.database):
        return []
    email, password = settings.admin_email, settings.admin_password
    if email is not None and password is not None:
        await create_first_admin(services, email, password)
        return [f"The first administrator is {email}."]
    if settings.requires_secrets:
        raise SettingsError(
            "TAPGATE_ADMIN_EMAIL and TAPGATE_ADMIN_PASSWORD must be set for the first start"
        )
    email, password = _DEVELOPMENT_ADMIN_EMAIL, secrets.token_urlsafe(15)
    if not await create_first_admin(services, email, password):
        return []
    file = get_first_admin_path(settings.data_dir)
    private_files.write(file, (email, password))
    return [f"The first administrator is {email}, password {password} (saved in {file})."]


def get_first_admin_path(data_dir: Path) -> Path:
    """Return the path of the file with the generated credentials of the first admin."""
    return data_dir / "administrator.txt"


async def main(create: Callable[[Services], App] = create_app) -> None:
    settings = load_settings(os.environ)
    logs.configure(log_format=settings.log_format)
    logs.install_exception_hooks()
    assert settings.database_url is not None, "the supervisor must set the database URL"
    if REPORT_WORKER_VARIABLE in os.environ:
        async with open_services(settings, settings.database_url, is_report_worker=True) as opened:
            await ReportServer(create(opened), opened).run()
        return
    async with (
        open_services(settings, settings.database_url, is_worker=True) as services,
        services.nodes.remove_on_exit(),
        _start_background_tasks(services),
    ):
        if path := os.environ.get(REPORT_SOCKET_VARIABLE):
            services.report_client = ReportClient(path)
        await worker.serve(
            create(services),
            ConnectionLimit(settings),
            health=services.health,
            drain_seconds=settings.drain_seconds,
        )


def _start_background_tasks(services: Services) -> AbstractAsyncContextManager[None]:
    queue_services = dataclasses.replace(services, database=services.queue_database)
    return run_background_tasks(
        Sealer(services.database).run(),
        services.rejection_log.run(),
        services.nodes.run(),
        RollupCompactor(services.database, services.clock).run(),
        ReceiptWorker(queue_services).run(),
        MessageSender(queue_services).run(),
        services.ledger.replay_counter.run(services.database),
        services.authenticator.terminals.run(),
        services.authenticator.api_keys.last_used.run(),
        services.authenticator.sessions.last_seen.run(),
        WebhookWorker(queue_services, EVENT_RECORD_LOADERS).run(),
        RetentionWorker(services).run(),
        ApprovalWorker(services).run(),
        LedgerMaintenance(services.database, services.clock, services.settings).run(),
        statement_operations.remove_expired(services.database, services.clock),
        support_operations.remove_expired(services.database, services.clock),
    )


if __name__ == "__main__":
    worker.run(main)
