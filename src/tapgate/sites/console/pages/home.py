"""Home page: is everything all right, and what must I do?"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.overview_chart import PERIODS, build_chart, build_figures
from tapgate.sites.console.components.work_items import load_work
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pages.onboarding import STEP_TEXTS, load_onboarding
from tapgate.sites.console.site import Pages
from tapgate.sites.console.times import format_ago
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.nodes import NodeStatus
from tapgate_client.schemas.work_queues import WorkQueueName

pages = Pages()

_NODES_PATH: Final = "/api/v1/system/nodes"
#: Work that the home page shows, by role. Support and compliance come for their work.
_MAX_ITEMS: Final[Mapping[str, int]] = {AdminRole.SUPPORT_USER: 12, AdminRole.COMPLIANCE_USER: 12}
_DEFAULT_ITEMS: Final = 5
#: Finance comes for the figures.
_FIGURES_FIRST: Final = frozenset({AdminRole.FINANCE_USER})


class Status(NamedTuple):
    """Part of the status line. `tone` is good, warn or bad."""

    tone: str
    text: str
    path: str | None


@pages.get("/console")
async def show_home(request: PageRequest) -> Reply[bytes]:
    role = request.principal.role
    overview, (work, has_more), nodes, onboarding = await asyncio.gather(
        request.get("/api/v1/overview", request.query.pick("period")),
        load_work(request, _MAX_ITEMS.get(role or "", _DEFAULT_ITEMS)),
        request.get_if_allowed(_NODES_PATH),
        load_onboarding(request),
    )
    return request.render(
        "home.html",
        overview=overview,
        periods=PERIODS,
        statuses=_build_status(request, overview, nodes),
        parts=("figures", "work") if role in _FIGURES_FIRST else ("work", "figures"),
        work=work,
        has_more=has_more,
        figures=build_figures(overview),
        volume=build_chart(request, overview, "payments", compare=True),
        onboarding=onboarding,
        texts=STEP_TEXTS,
    )


def _build_status(
    request: PageRequest, overview: Mapping[str, Any], nodes: Mapping[str, Any] | None
) -> list[Status]:
    """Return whether the ledger, nodes, webhooks and approvals are all right."""
    parts = [_describe_ledger(request, overview["ledger"]["last_proof"])]
    if nodes is not None:
        parts.append(_describe_nodes(request, nodes))
    failing = WorkQueueName.FAILING_WEBHOOKS
    if failing in request.work_queues:
        parts.append(_describe_webhooks(request, request.count_waiting(failing)))
    if WorkQueueName.APPROVALS in request.work_queues:
        parts.append(_describe_approvals(request, request.count_waiting(WorkQueueName.APPROVALS)))
    return parts


def _describe_ledger(request: PageRequest, proof: Mapping[str, Any] | None) -> Status:
    path = "/console/ledger" if request.can_access("GET /api/v1/ledger/accounts") else None
    if proof is None:
        return Status("warn", request.translate("Ledger not verified yet"), path)
    age = format_ago(proof["proven_at"], request.now, request.translator)
    if not proof["holds"]:
        return Status("bad", request.translate("Ledger check failed {age}", age=age), path)
    return Status("good", request.translate("Ledger verified {age}", age=age), path)


def _describe_nodes(request: PageRequest, nodes: Mapping[str, Any]) -> Status:
    ready = sum(node["status"] == NodeStatus.READY for node in nodes["data"])
    total = len(nodes["data"])
    text = request.translate("{ready} of {total} nodes ready", ready=ready, total=total)
    return Status("good" if ready == total else "bad", text, "/console/nodes")


def _describe_webhooks(request: PageRequest, failing: int) -> Status:
    if not failing:
        return Status("good", request.translate("Webhooks delivered"), "/console/webhooks")
    text = request.translator.translate_plural(
        failing, "{count} webhook fails", "{count} webhooks fail"
    )
    return Status("warn", text, "/console/webhooks?failing=true")


def _describe_approvals(request: PageRequest, waiting: int) -> Status:
    if not waiting:
        text = request.translate("No approvals wait for you")
        return Status("good", text, "/console/approvals")
    text = request.translator.translate_plural(
        waiting, "{count} approval waits for you", "{count} approvals wait for you"
    )
    return Status("warn", text, "/console/approvals")
