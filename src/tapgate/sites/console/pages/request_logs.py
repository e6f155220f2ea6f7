"""Log of API requests: list with filters, and details with bodies."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.lists import get_filtered_list
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.rendering import format_json
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.request_logs import LoggedMethod, RequestResult

pages = Pages()

_LIST_PATH: Final = "/api/v1/admin/request-logs"
_FILTERS: Final = {
    "api_key_id": "Key",
    "method": "Method",
    "endpoint": "Endpoint",
    "result": "Result",
    "status": "Status",
    "error_code": "Error code",
    "request_id": "Request ID",
    "idempotency_key": "Idempotency key",
    "transaction_id": "Transaction",
    "from": "From",
    "to": "To",
}
PICKED_TYPES: Final = {"api_key_id": "key"}


@pages.get("/console/request-logs")
async def list_requests(request: PageRequest) -> Reply[bytes]:
    return await render_list(request, "request_logs/list.html")


async def render_list(request: PageRequest, template: str) -> Reply[bytes]:
    page, filter_errors = await get_filtered_list(request, _LIST_PATH, _FILTERS, PICKED_TYPES)
    return request.render(
        template,
        page=page,
        filter_errors=filter_errors,
        filters=tuple(_FILTERS),
        picked_types=PICKED_TYPES,
        methods=[(method, method) for method in LoggedMethod],
        results=tuple(RequestResult),
        days=request.context.services.settings.request_log_days,
    )


@pages.get("/console/request-logs/{id}")
async def show_request(request: PageRequest, id: str) -> Reply[bytes]:
    log = await request.get(f"{_LIST_PATH}/{{id}}", id=id)
    parts = {
        "Query": log["query"],
        "Request": log["request_body"],
        "Response": log["response_body"],
    }
    return request.render(
        "request_logs/request.html",
        log=log,
        has_bodies=request.context.services.settings.request_log_bodies,
        bodies={name: format_json(body) for name, body in parts.items() if body is not None},
    )
