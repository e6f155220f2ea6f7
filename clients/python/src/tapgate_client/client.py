"""Entry points of the client library, synchronous and asynchronous."""

from typing import Final, Self

import httpx2

from tapgate_client.clock import Clock, system_clock
from tapgate_client.credentials import Credential, Login
from tapgate_client.declaration import AsyncMode, M, OperationGroup, SyncMode, Transport, reads
from tapgate_client.groups.account import Account
from tapgate_client.groups.admin import Admin
from tapgate_client.groups.agents import Agents
from tapgate_client.groups.approvals import ApprovalRulesGroup, Approvals
from tapgate_client.groups.audit import AuditLog
from tapgate_client.groups.cards import Cards
from tapgate_client.groups.compliance import Compliance
from tapgate_client.groups.ledger import GeneralLedger
from tapgate_client.groups.merchants import InApp, Pos
from tapgate_client.groups.messages import Messages
from tapgate_client.groups.overview import OverviewGroup
from tapgate_client.groups.partners import Partners
from tapgate_client.groups.processors import Processors
from tapgate_client.groups.rules import AccountRules, CommissionRulesGroup, FeeRulesGroup
from tapgate_client.groups.subscribers import Subscribers
from tapgate_client.groups.support import Support
from tapgate_client.groups.system import System
from tapgate_client.groups.transactions import Transactions
from tapgate_client.groups.wallet import Balances, Wallet
from tapgate_client.groups.webhook_endpoints import WebhookEndpoints
from tapgate_client.request_flow import RequestFlow
from tapgate_client.retries import RetryPolicy
from tapgate_client.schemas.health import Health, Live, Readiness
from tapgate_client.transport import AsyncTransport, SyncTransport

_DEFAULT_RETRY_POLICY: Final = RetryPolicy()
#: Longer than the gateway takes to decide, shorter than a customer waits at a point of sale.
_DEFAULT_TIMEOUT_SECONDS: Final = 15.0


class BaseClient(OperationGroup[M]):
    """All operation groups of the API, in one mode."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.subscribers: Subscribers[M] = Subscribers(transport)
        self.cards: Cards[M] = Cards(transport)
        self.wallet: Wallet[M] = Wallet(transport)
        self.balances: Balances[M] = Balances(transport)
        self.transactions: Transactions[M] = Transactions(transport)
        self.agents: Agents[M] = Agents(transport)
        self.pos: Pos[M] = Pos(transport)
        self.in_app: InApp[M] = InApp(transport)
        self.processors: Processors[M] = Processors(transport)
        self.partners: Partners[M] = Partners(transport)
        self.compliance: Compliance[M] = Compliance(transport)
        self.support: Support[M] = Support(transport)
        self.approvals: Approvals[M] = Approvals(transport)
        self.approval_rules: ApprovalRulesGroup[M] = ApprovalRulesGroup(transport)
        self.account_rules: AccountRules[M] = AccountRules(transport)
        self.fee_rules: FeeRulesGroup[M] = FeeRulesGroup(transport)
        self.commission_rules: CommissionRulesGroup[M] = CommissionRulesGroup(transport)
        self.admin: Admin[M] = Admin(transport)
        self.account: Account[M] = Account(transport)
        self.audit_log: AuditLog[M] = AuditLog(transport)
        self.webhook_endpoints: WebhookEndpoints[M] = WebhookEndpoints(transport)
        self.messages: Messages[M] = Messages(transport)
        self.overview: OverviewGroup[M] = OverviewGroup(transport)
        self.system: System[M] = System(transport)
        self.ledger: GeneralLedger[M] = GeneralLedger(transport)

    @reads("GET /live", public=True)
    def live(self) -> Live:
        """Return whether a process of the gateway responds."""

    @reads("GET /ready", public=True, extra_success_statuses=(503,))
    def ready(self) -> Readiness:
        """Return whether the node can process requests, also while it cannot (status 503)."""

    @reads("GET /health", public=True, extra_success_statuses=(503,))
    def health(self) -> Health:
        """Return the health of the gateway, also while it is unhealthy (status 503)."""


class TapgateClient(BaseClient[SyncMode]):
    """Synchronous client of the gateway API, safe to share between threads.

    `with TapgateClient("https://pay.example.com", ApiKey("svc_live_...")) as client: ...`

    `timeout` is the maximum time in seconds that an attempt waits for the network to send or
    receive data, but at most 5 seconds to connect. `http` replaces the HTTP transport.
    """

    def __init__(
        self,
        base_url: str,
        credential: Credential | Login | None = None,
        *,
        retries: RetryPolicy = _DEFAULT_RETRY_POLICY,
        timeout: float = _DEFAULT_TIMEOUT_SECONDS,
        http: httpx2.BaseTransport | None = None,
        clock: Clock = system_clock,
    ) -> None:
        flow = RequestFlow(base_url, credential, retries=retries, timeout=timeout, clock=clock)
        self._own_transport = SyncTransport(flow, http)
        super().__init__(self._own_transport)

    def close(self) -> None:
        self._own_transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncTapgateClient(BaseClient[AsyncMode]):
    """Asynchronous client of the gateway API.

    `async with AsyncTapgateClient(url, ServiceSecret("messenger", secret)) as client: ...`

    A client belongs to one event loop and may be shared by the tasks of that loop.
    """

    def __init__(
        self,
        base_url: str,
        credential: Credential | Login | None = None,
        *,
        retries: RetryPolicy = _DEFAULT_RETRY_POLICY,
        timeout: float = _DEFAULT_TIMEOUT_SECONDS,
        http: httpx2.AsyncBaseTransport | None = None,
        clock: Clock = system_clock,
    ) -> None:
        flow = RequestFlow(base_url, credential, retries=retries, timeout=timeout, clock=clock)
        self._own_transport = AsyncTransport(flow, http)
        super().__init__(self._own_transport)

    async def close(self) -> None:
        await self._own_transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
