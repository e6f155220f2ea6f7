"""CSV list exports. A script on the page requests one part after another and shows progress."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.http.api import csv_files
from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.lists import pick_filters
from tapgate.sites.console.page_request import SECURITY_HEADERS, PageRequest
from tapgate.sites.console.pages import (
    approvals,
    bank_statements,
    book_transfers,
    compliance,
    disputes,
    float_requests,
    payouts,
    recalls,
    support,
)
from tapgate.sites.console.site import Pages
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import Admin, ApiKeyRecord
from tapgate_client.schemas.agents import AgentRecord
from tapgate_client.schemas.approvals import ApprovalRecord
from tapgate_client.schemas.audit import AuditEntry
from tapgate_client.schemas.bank_statements import BankStatementRecord
from tapgate_client.schemas.books import BookTransferRecord
from tapgate_client.schemas.cards import CardRecord
from tapgate_client.schemas.compliance import AlertRecord
from tapgate_client.schemas.disputes import DisputeRecord
from tapgate_client.schemas.float_requests import FloatRequestRecord
from tapgate_client.schemas.kyc_reviews import KycReviewRecord
from tapgate_client.schemas.partners import PartnerRecord
from tapgate_client.schemas.payouts import PayoutRecord, PayoutRunRecord
from tapgate_client.schemas.processors import ProcessorRecord
from tapgate_client.schemas.recalls import RecallRecord
from tapgate_client.schemas.subscribers import SubscriberRecord
from tapgate_client.schemas.support import SupportRequestRecord
from tapgate_client.schemas.webhooks import WebhookEndpointRecord

pages = Pages()

_PREFIX: Final = "/console/"
_PAGE_SIZE: Final = 100
_PAGES_PER_PART: Final = 10
#: Fields that are not exported: conversations with customers, and request results.
_EXCLUDED_FIELDS: Final = frozenset({"messages", "result", "masked"})

GetFilters = Callable[[PageRequest], dict[str, str]]


class ListExport(NamedTuple):
    """List export. `source` is the API's path, and `record` the type of its records."""

    source: str
    record: type[msgspec.Struct]
    get_filters: GetFilters

    @property
    def columns(self) -> list[str]:
        names = self.record.__struct_encode_fields__
        return [name for name in names if name not in _EXCLUDED_FIELDS]


def _pick(*names: str) -> GetFilters:
    return lambda request: pick_filters(request, *names)


#: Exports by list page path.
EXPORTS: Final[Mapping[str, ListExport]] = {
    "/console/subscribers": ListExport(
        "/api/v1/subscribers",
        SubscriberRecord,
        _pick("search", "status", "kyc_level", "kyc_status"),
    ),
    "/console/cards": ListExport(
        "/api/v1/cards", CardRecord, _pick("search", "status", "type", "subscriber_id")
    ),
    "/console/agents": ListExport(
        "/api/v1/agents",
        AgentRecord,
        _pick("search", "agent_type", "status", "parent_agent_id", "low_float"),
    ),
    "/console/processors": ListExport(
        "/api/v1/processors", ProcessorRecord, _pick("search", "status")
    ),
    "/console/partners": ListExport(
        "/api/v1/admin/partners", PartnerRecord, _pick("search", "status")
    ),
    "/console/compliance": ListExport(
        "/api/v1/compliance/alerts", AlertRecord, compliance.get_filters
    ),
    "/console/support": ListExport(
        "/api/v1/support/requests", SupportRequestRecord, support.get_filters
    ),
    "/console/disputes": ListExport("/api/v1/disputes", DisputeRecord, disputes.get_filters),
    "/console/recalls": ListExport("/api/v1/recalls", RecallRecord, recalls.get_filters),
    "/console/float-requests": ListExport(
        "/api/v1/float-requests", FloatRequestRecord, float_requests.get_filters
    ),
    "/console/book-transfers": ListExport(
        "/api/v1/books/transfers", BookTransferRecord, book_transfers.get_filters
    ),
    "/console/payouts": ListExport("/api/v1/payouts", PayoutRecord, payouts.get_filters),
    "/console/payout-runs": ListExport("/api/v1/payout-runs", PayoutRunRecord, _pick()),
    "/console/bank-statements": ListExport(
        "/api/v1/bank-statements", BankStatementRecord, bank_statements.get_filters
    ),
    "/console/kyc": ListExport("/api/v1/kyc-reviews", KycReviewRecord, _pick("assignee")),
    "/console/approvals": ListExport("/api/v1/approvals", ApprovalRecord, approvals.get_filters),
    "/console/webhooks": ListExport(
        "/api/v1/admin/webhook-endpoints", WebhookEndpointRecord, _pick("failing")
    ),
    "/console/api-keys": ListExport("/api/v1/admin/api-keys", ApiKeyRecord, _pick()),
    "/console/administrators": ListExport("/api/v1/admin/users", Admin, _pick()),
    "/console/audit": ListExport(
        "/api/v1/audit/logs",
        AuditEntry,
        _pick("event", "actor_id", "resource_type", "resource_id", "result", "from", "to"),
    ),
}


@pages.get("/console/export/{name}")
async def export_list(request: PageRequest, name: str) -> Reply[bytes]:
    """Return up to 1,000 list rows as CSV, and the next part's cursor in a header."""
    export = EXPORTS.get(_PREFIX + name)
    if export is None:
        raise ApiError(Code.NOT_FOUND)
    filters: dict[str, str | int] = {**export.get_filters(request), "limit": _PAGE_SIZE}
    cursor, rows = request.query.get("cursor"), list[list[str]]()
    is_first = cursor is None
    for _ in range(_PAGES_PER_PART):
        page = await request.get(export.source, filters | ({"cursor": cursor} if cursor else {}))
        rows += _build_rows(page["data"], export.columns)
        cursor = page["next_cursor"]
        if cursor is None:
            break
    services = request.context.services
    day = get_platform_day(services.clock(), services.settings.timezone)
    headers = {
        **SECURITY_HEADERS,
        "Content-Disposition": f'attachment; filename="{name}-{day}.csv"',
        "X-Rows": str(len(rows)),
    }
    if cursor is not None:
        headers["X-Next-Cursor"] = cursor
    content = (
        csv_files.render_file(export.columns, rows) if is_first else csv_files.render_rows(rows)
    )
    return Reply(content, headers=headers, content_type=csv_files.CONTENT_TYPE)


def _build_rows(records: Iterable[dict[str, Any]], columns: list[str]) -> list[list[str]]:
    return [[_format_cell(record.get(column)) for column in columns] for record in records]


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(_format_cell, value))
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
