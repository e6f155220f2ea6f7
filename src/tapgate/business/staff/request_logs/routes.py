"""Request log endpoints."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

import msgspec

from tapgate.auth.owners import REQUEST_LOGS
from tapgate.business.staff.request_logs import queries
from tapgate.core.id_generator import get_time
from tapgate.core.pagination import paginate
from tapgate.core.records import RequestLogId, require_record
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate_client import clock, ids
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.request_logs import LoggedRequest, LoggedRequestDetails, RequestLogQuery

endpoints = Endpoints(
    "Admin",
    "/api/v1/admin/request-logs",
    access=Access(roles="A"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)


@endpoints.get(
    "",
    heavy=True,
    owners=OwnerAccess(binding=Binding.LIST, roles="MP", rows=REQUEST_LOGS, key_roles=""),
)
async def list_request_logs(request: RequestContext, query: RequestLogQuery) -> Page[LoggedRequest]:
    """List logged requests.

    Requests with an API key or with a processor's, terminal's or partner's signing key, newest
    first. `result` is `failed` for statuses of 400 and above. `endpoint` is a path template, such
    as `/api/v1/cards/{serial}`. `request_id` is the `X-Request-ID` of a response, and
    `idempotency_key` the key of a request that moves money, in its body or header. `from` and `to`
    are inclusive, and dates are in the platform's time zone.

    Requests are listed about a second after their response, for `TAPGATE_REQUEST_LOG_DAYS` days.
    Requests without a valid credential are not logged, and under high load some requests are not.
    A merchant_manager or partner_user gets the requests with the keys of the processor or partner.
    """
    services = request.services
    rows = await queries.list_page(
        services.database,
        query,
        _get_start(request),
        services.settings.timezone,
        request.owner_view,
    )
    return paginate(rows, query, _to_record, itemgetter("id"))


@endpoints.get(
    "/{id}",
    owners=OwnerAccess(binding=Binding.ROW, roles="MP", rows=REQUEST_LOGS, key_roles=""),
)
async def get_request_log(request: RequestContext, id: RequestLogId) -> LoggedRequestDetails:
    """Get a logged request.

    Includes the query and, if `TAPGATE_REQUEST_LOG_BODIES` is on, the JSON request and response
    bodies. Secrets, personal data and free texts are replaced by `***`.
    """
    row = await queries.find(request.services.database, id, _get_start(request))
    row = require_record(ids.REQUEST_LOG, row)
    return LoggedRequestDetails(
        **_get_fields(row),
        query=_decode(row["query"]),
        request_body=_decode(row["request_body"]),
        response_body=_decode(row["response_body"]),
    )


def _get_start(request: RequestContext) -> datetime:
    """Return the start of the retention period."""
    services = request.services
    return services.clock() - timedelta(days=services.settings.request_log_days)


def _to_record(row: Mapping[str, Any]) -> LoggedRequest:
    return LoggedRequest(**_get_fields(row))


def _get_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "caller_type", "caller_name", "method", "endpoint", "path", "status", "request_id", "ip",
        "idempotency_key",
    )  # fmt: skip
    transaction_id = row["transaction_id"]
    return {name: row[name] for name in names} | {
        "id": ids.encode(ids.REQUEST_LOG, row["id"]),
        "created_at": clock.format_rfc3339(get_time(row["id"])),
        "api_key_id": ids.encode(ids.KEY, row["key_id"]),
        "error_code": row["code"],
        "transaction_id": transaction_id and ids.encode(ids.TRANSACTION, transaction_id),
        "duration_ms": row["duration_us"] / 1000,
    }


def _decode(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
