"""Reports: figures of a period, compared with the one before, and the state of the platform."""

from typing import Any, Final

from tapgate.http.api import csv_files
from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.overview_chart import (
    PERIODS,
    build_chart,
    build_flow_figures,
    build_transactions_path,
    compute_change,
)
from tapgate.sites.console.page_request import SECURITY_HEADERS, PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code

pages = Pages()

_OVERVIEW_PATH: Final = "/api/v1/overview"
_EXPORTED: Final = ("type", "count", "completed", "failed", "under_review", "amount", "fees")

ACTIONS = (
    Action(
        name="ledger.verify",
        endpoint="POST /api/v1/ledger/verify",
        title="Verify the ledger now?",
        description="Recalculates every balance from ledger entries. Payments continue; large "
        "ledgers take a few minutes.",
        button="Verify ledger",
        success_message="Ledger verified.",
        result_template="proof.html",
    ),
)


@pages.get("/console/reports")
async def show_reports(request: PageRequest) -> Reply[bytes]:
    overview, problem = await _load_overview(request)
    return request.render(
        "reports.html",
        overview=overview,
        problem=problem,
        periods=PERIODS,
        flows=build_flow_figures(overview),
        transactions_path=build_transactions_path(overview),
        count_change=compute_change(
            overview["totals"]["count"], overview["previous"]["totals"]["count"]
        ),
        volume=build_chart(request, overview, "payments", compare=True),
        counts=build_chart(request, overview, "completed", "failed"),
    )


async def _load_overview(request: PageRequest) -> tuple[Any, str | None]:
    """Return the overview of the period in the query, or of the last day and the problem."""
    filters = request.query.pick("period", "from", "to")
    try:
        return await request.get(_OVERVIEW_PATH, filters), None
    except ApiError as error:
        if error.code is not Code.VALIDATION_FAILED:
            raise
        overview = await request.get(_OVERVIEW_PATH, {})
        return overview, request.translator.translate_error(error)


@pages.get("/console/reports/export")
async def export_types(request: PageRequest) -> Reply[bytes]:
    """Return the totals by type as a CSV file."""
    overview = await request.get(_OVERVIEW_PATH, request.query.pick("period", "from", "to"))
    rows = [[str(total[name]) for name in _EXPORTED] for total in overview["by_type"]]
    file = f"tapgate-report-{overview['from'][:10]}-{overview['to'][:10]}.csv"
    return Reply(
        csv_files.render_file(_EXPORTED, rows),
        headers={
            **SECURITY_HEADERS,
            "Content-Disposition": f'attachment; filename="{file}"',
        },
        content_type=csv_files.CONTENT_TYPE,
    )
