"""Gateway: assembles all components, and the worker process entry point.

`create_app` adds the endpoints to a process's services.
"""

import dataclasses
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from itertools import chain
from typing import Any, Final, cast

import msgspec

from tapgate.business.agents import money_routes as agent_money
from tapgate.business.agents import routes as agents
from tapgate.business.agents.cash_out_requests import routes as cash_out_requests
from tapgate.business.agents.float_requests import routes as float_requests
from tapgate.business.approvals import routes as approvals
from tapgate.business.approvals.execution import ApprovalWorker
from tapgate.business.branding import routes as branding
from tapgate.business.compliance.account_rules import routes as account_rules
from tapgate.business.compliance.alerts import routes as alerts
from tapgate.business.compliance.check import routes as compliance_check
from tapgate.business.compliance.rules import routes as compliance_rules
from tapgate.business.customers.cards import proof_routes as card_proofs
from tapgate.business.customers.cards import routes as cards
from tapgate.business.customers.subscribers import chat_turns
from tapgate.business.customers.subscribers import routes as subscribers
from tapgate.business.customers.subscribers.kyc_documents import review_routes as kyc_reviews
from tapgate.business.customers.subscribers.kyc_documents import routes as kyc_documents
from tapgate.business.disputes import routes as disputes
from tapgate.business.finance.bank_accounts import routes as bank_accounts
from tapgate.business.finance.batches import routes as batches
from tapgate.business.finance.batches.worker import BatchWorker
from tapgate.business.finance.book_report import routes as book_report
from tapgate.business.finance.day_close import routes as day_close
from tapgate.business.finance.day_close.worker import DayCloseWorker
from tapgate.business.finance.general_ledger import routes as general_ledger
from tapgate.business.finance.payouts import routes as payouts
from tapgate.business.finance.payouts.schedule_worker import PayoutScheduleWorker
from tapgate.business.finance.reconciliation import routes as reconciliation
from tapgate.business.finance.reconciliation.imports import StatementWorker
from tapgate.business.finance.reports import routes as finance_reports
from tapgate.business.inbox import routes as work_queues
from tapgate.business.merchants.pos import routes as pos
from tapgate.business.merchants.pos import staff_refunds
from tapgate.business.merchants.processors import key_routes as signing_keys
from tapgate.business.merchants.processors import routes as processors
from tapgate.business.merchants.processors.terminals import routes as terminals
from tapgate.business.owners import routes as owners
from tapgate.business.partners import routes as partners
from tapgate.business.partners import top_up_routes as top_ups
from tapgate.business.payments.books import routes as books
from tapgate.business.payments.books import transfer_routes as book_transfers
from tapgate.business.payments.books.number_checks import NumberCheckWorker
from tapgate.business.payments.books.outgoing import BookTransferWorker
from tapgate.business.payments.fees import routes as fees
from tapgate.business.payments.recalls import routes as recalls
from tapgate.business.payments.recalls.operations import RecallWorker
from tapgate.business.payments.transactions import reversal_routes as reversals
from tapgate.business.payments.transactions import routes as transactions
from tapgate.business.payments.wallets import routes as wallets
from tapgate.business.payments.wallets.statements import routes as statements
from tapgate.business.reporting import money_routes as money_views
from tapgate.business.reporting import node_routes as nodes
from tapgate.business.reporting import onboarding
from tapgate.business.reporting import routes as overview
from tapgate.business.reporting import timeline_routes as timeline
from tapgate.business.reporting.rollups import RollupCompactor
from tapgate.business.search import routes as search
from tapgate.business.staff import routes as admin
from tapgate.business.staff.account import passkey_routes as passkeys
from tapgate.business.staff.account import routes as account
from tapgate.business.staff.api_keys import routes as api_keys
from tapgate.business.staff.request_logs import routes as request_logs
from tapgate.business.staff.sso import routes as sso
from tapgate.business.support import phone_change_veto
from tapgate.business.support import routes as support
from tapgate.business.support import saved_reply_routes as saved_replies
from tapgate.core.settings import Settings, load_settings
from tapgate.events.audit import routes as audit
from tapgate.events.audit.chain import Sealer
from tapgate.events.notifications import message_statuses, provider_warnings
from tapgate.events.notifications.notification_messages import MessageSender
from tapgate.events.notifications.receipts import ReceiptWorker
from tapgate.events.webhooks import routes as webhooks
from tapgate.events.webhooks.worker import WebhookWorker
from tapgate.http import worker
from tapgate.http.api.app import App, Site
from tapgate.http.api.openapi import render_openapi_document
from tapgate.http.api.report_server import ReportServer
from tapgate.http.api.services import Services
from tapgate.http.api.system import build_system_endpoints
from tapgate.http.connection_limit import ConnectionLimit
from tapgate.http.endpoint import Endpoint, Endpoints
from tapgate.ledger.maintenance import LedgerMaintenance
from tapgate.runtime import logs
from tapgate.runtime.background import run_background_tasks
from tapgate.runtime.handover import REPORT_SOCKET_VARIABLE, REPORT_WORKER_VARIABLE
from tapgate.runtime.retention import RetentionJob
from tapgate.server.event_records import EVENT_RECORD_LOADERS, WEBHOOK_EVENTS
from tapgate.server.gateway_services import open_services
from tapgate.server.retention import RETENTION
from tapgate.sites.console.console import build_console
from tapgate.sites.console.favicon import Favicon
from tapgate.sites.console.navigation import HOME_PATH
from tapgate.sites.guide.site import REFERENCE_PATH, GuideSite
from tapgate.sites.portal.portal import build_portal
from tapgate.sites.redirect import Redirect
from tapgate.sites.tap_page.site import TapPage
from tapgate.sites.verify_page.site import VerifyPage
from tapgate_client.clock import Clock, system_clock

ENDPOINT_GROUPS: Final[tuple[Endpoints, ...]] = (
    subscribers.endpoints,
    kyc_documents.endpoints,
    kyc_reviews.endpoints,
    timeline.endpoints,
    cards.endpoints,
    card_proofs.endpoints,
    wallets.endpoints,
    books.endpoints,
    book_transfers.endpoints,
    book_report.endpoints,
    pos.pos_endpoints,
    pos.in_app_endpoints,
    processors.endpoints,
    money_views.processor_endpoints,
    terminals.endpoints,
    signing_keys.endpoints,
    owners.endpoints,
    partners.endpoints,
    money_views.partner_endpoints,
    top_ups.endpoints,
    agents.endpoints,
    money_views.agent_endpoints,
    agent_money.endpoints,
    float_requests.endpoints,
    cash_out_requests.endpoints,
    statements.endpoints,
    transactions.endpoints,
    staff_refunds.endpoints,
    reversals.endpoints,
    recalls.endpoints,
    recalls.transaction_endpoints,
    money_views.transaction_endpoints,
    disputes.endpoints,
    fees.fee_endpoints,
    fees.commission_endpoints,
    compliance_check.endpoints,
    alerts.endpoints,
    compliance_rules.endpoints,
    account_rules.endpoints,
    support.endpoints,
    saved_replies.endpoints,
    phone_change_veto.endpoints,
    approvals.rule_endpoints,
    approvals.endpoints,
    admin.endpoints,
    sso.endpoints,
    account.endpoints,
    passkeys.endpoints,
    api_keys.endpoints,
    request_logs.endpoints,
    audit.endpoints,
    webhooks.endpoints,
    message_statuses.endpoints,
    provider_warnings.endpoints,
    chat_turns.endpoints,
    overview.endpoints,
    work_queues.endpoints,
    onboarding.endpoints,
    branding.endpoints,
    search.endpoints,
    nodes.endpoints,
    general_ledger.endpoints,
    day_close.endpoints,
    bank_accounts.endpoints,
    payouts.endpoints,
    reconciliation.endpoints,
    batches.endpoints,
    finance_reports.endpoints,
)

#: Currency for amounts in the OpenAPI document, if no installation is described.
_EXAMPLE_CURRENCY: Final = "SLE"


def list_endpoints() -> list[Endpoint]:
    """Return all gateway endpoints. System endpoints, such as health, come last."""
    no_app = cast(App, None)  # the endpoints are only described, never called
    return [*chain.from_iterable(ENDPOINT_GROUPS), *build_system_endpoints(no_app)]


def build_openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document for the whole API."""
    rendered = render_openapi_document(list_endpoints(), _EXAMPLE_CURRENCY, WEBHOOK_EVENTS)
    document: dict[str, Any] = msgspec.json.decode(rendered)
    return document


def build_sites() -> tuple[Site, ...]:
    return (
        build_console(),
        build_portal(),
        Redirect("/", HOME_PATH),
        Redirect("/docs", REFERENCE_PATH),
        Favicon(),
        GuideSite(),
        TapPage(),
        VerifyPage(),
    )


def create_app(services: Services, extra_sites: Iterable[Site] = ()) -> App:
    sites = (*build_sites(), *extra_sites)
    return App(services, chain.from_iterable(ENDPOINT_GROUPS), sites, WEBHOOK_EVENTS)


def open_gateway_services(
    settings: Settings, database_url: str, **options: Any
) -> AbstractAsyncContextManager[Services]:
    """Open the services for a process that serves the endpoints; see `open_services`."""
    endpoints = chain.from_iterable(ENDPOINT_GROUPS)
    return open_services(settings, database_url, endpoints=endpoints, **options)


async def main(
    create: Callable[[Services], App] = create_app,
    choose_clock: Callable[[Settings], Clock] = lambda _: system_clock,
) -> None:
    settings = load_settings(os.environ)
    clock = choose_clock(settings)
    logs.configure(log_format=settings.log_format)
    logs.install_exception_hooks()
    assert settings.database_url is not None, "the supervisor must set the database URL"
    if REPORT_WORKER_VARIABLE in os.environ:
        async with open_gateway_services(
            settings, settings.database_url, clock=clock, is_report_worker=True
        ) as opened:
            await ReportServer(create(opened), opened).run()
        return
    async with (
        open_gateway_services(
            settings,
            settings.database_url,
            clock=clock,
            is_worker=True,
            report_socket=os.environ.get(REPORT_SOCKET_VARIABLE) or None,
        ) as services,
        services.nodes.remove_on_exit(),
        start_background_tasks(services),
    ):
        await worker.serve(
            create(services),
            ConnectionLimit(settings),
            health=services.health,
            drain_seconds=settings.drain_seconds,
        )


def start_background_tasks(services: Services) -> AbstractAsyncContextManager[None]:
    queue_services = dataclasses.replace(services, database=services.queue_database)
    message_sender = MessageSender(queue_services)
    return run_background_tasks(
        Sealer(services.database).run(),
        services.rejection_log.run(),
        services.request_log.run(),
        services.nodes.run(),
        RollupCompactor(services.database, services.clock).run(),
        ReceiptWorker(queue_services, message_sender).run(),
        message_sender.run(),
        services.ledger.replay_counter.run(services.database),
        services.authenticator.terminals.run(),
        services.authenticator.api_keys.last_used.run(),
        services.authenticator.hmac_keys.last_used.run(),
        services.authenticator.sessions.last_seen.run(),
        WebhookWorker(queue_services, EVENT_RECORD_LOADERS).run(),
        RetentionJob(services.database, services.clock, services.settings, RETENTION).run(),
        ApprovalWorker(services).run(),
        DayCloseWorker(services).run(),
        RecallWorker(services).run(),
        BookTransferWorker(services).run(),
        NumberCheckWorker(services).run(),
        PayoutScheduleWorker(services).run(),
        StatementWorker(services).run(),
        BatchWorker(services).run(),
        LedgerMaintenance(services.database, services.clock).run(),
    )


if __name__ == "__main__":
    worker.run(main)
