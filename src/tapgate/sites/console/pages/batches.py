"""Batches: upload, problems by row and column, run with progress, and results."""

from typing import Any, Final

from tapgate.http.api import csv_files
from tapgate.http.endpoint import MEBIBYTE, Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.lists import add_list_page, pick_filters
from tapgate.sites.console.components.next_steps import tell_batch
from tapgate.sites.console.components.related import gather_by_name, get_admin_names, get_audit
from tapgate.sites.console.form_errors import describe_value_error
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import SECURITY_HEADERS, PageRequest
from tapgate.sites.console.rendering import end_sentence
from tapgate.sites.console.site import Pages
from tapgate.sites.console.translation.translator import source_text
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.batches import (
    MAX_LINES,
    PLATFORM_SOURCE,
    BatchLineStatus,
    BatchStatus,
)

pages = Pages()

_LIST_PATH: Final = "/api/v1/batches"
_ITEM_PATH: Final = f"{_LIST_PATH}/{{id}}"
_LINES_PATH: Final = f"{_ITEM_PATH}/lines"
_MAX_FILE_MEBIBYTES: Final = 8
#: Problems on the page of a batch, per status. The list of lines has all of them.
_PREVIEW_SIZE: Final = 25
_EXAMPLE: Final = (
    ("phone_number", "amount", "reference"),
    ("+23276123456", "500.00", "EMP-0017"),
    ("+23276123457", "1250.50", "EMP-0018"),
)
#: What to do about a line that was not paid, by its problem.
_ADVICE: Final = {
    Code.VALIDATION_FAILED: source_text("Correct the value in the file."),
    Code.SUBSCRIBER_NOT_FOUND: source_text("Check the number, or register the customer first."),
    Code.CARD_NOT_FOUND: source_text("Check the serial number."),
    Code.CARD_NOT_ACTIVE: source_text("Pay to the recipient's phone number instead."),
    Code.SUBSCRIBER_BLOCKED: source_text("The customer must be active again first."),
    Code.DUPLICATE_REFERENCE: source_text("Give each line its own reference."),
    Code.MAX_BALANCE_EXCEEDED: source_text("Pay less, or raise the recipient's KYC level first."),
    Code.INSUFFICIENT_FUNDS: source_text("Add money to the account that pays."),
}
#: Handled by the site's error page or sign-in redirect, not shown as an upload error.
_ACCESS_CODES: Final = (Code.UNAUTHORIZED, Code.FORBIDDEN, Code.BATCH_NOT_FOUND)
_NAME: Final = Field("name", hint="Receivers see it, such as “Salaries November”")

ACTIONS: Final = (
    Action(
        name="batch.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Pay a batch from a partner",
        description="Credits many wallets from the partner's account. Nothing is paid before you "
        "have uploaded the lines, checked them and started the run.",
        button="Create batch",
        fields=(_NAME, Field("source_id", "Partner", "picker", picks="partner")),
        success_message="Batch created.",
        moves_money=True,
        redirect_path="/console/batches/{id}",
    ),
    Action(
        name="batch.create_platform",
        endpoint=f"POST {_LIST_PATH}",
        title="Pay a batch from cash",
        description="Credits many wallets with the platform's own money. Nothing is paid before "
        "you have uploaded the lines, checked them and started the run.",
        button="Create batch from cash",
        fields=(_NAME, Field("source_id", kind="hidden", value=PLATFORM_SOURCE)),
        success_message="Batch created.",
        moves_money=True,
        redirect_path="/console/batches/{id}",
    ),
    Action(
        name="batch.validate",
        endpoint=f"POST {_ITEM_PATH}/validate",
        title="Check the lines",
        description="Checks every receiver and amount, and whether the source can pay. Then the "
        "lines can no longer be changed.",
        success_message="Lines checked.",
    ),
    Action(
        name="batch.run",
        endpoint=f"POST {_ITEM_PATH}/run",
        title="Pay this batch?",
        description="Pays all valid lines in the background and sends receipts to the receivers. "
        "Invalid lines are left out.",
        success_message="Batch started.",
        moves_money=True,
    ),
    Action(
        name="batch.cancel",
        endpoint=f"POST {_ITEM_PATH}/cancel",
        title="Stop this batch?",
        description="No further line is paid. Lines that were paid stay paid.",
        success_message="Batch cancelled.",
        is_dangerous=True,
    ),
)

add_list_page(
    pages,
    "/console/batches",
    _LIST_PATH,
    "batches/list.html",
    filters=("status",),
    statuses=tuple(BatchStatus),
)


@pages.get("/console/batches/{id}")
async def show_batch(request: PageRequest, id: str) -> Reply[bytes]:
    parts = await gather_by_name(
        batch=request.get(_ITEM_PATH, id=id),
        lines=_load_preview(request, id, None),
        invalid=_load_preview(request, id, BatchLineStatus.INVALID),
        failed=_load_preview(request, id, BatchLineStatus.FAILED),
        audit=get_audit(request, id),
        admin_names=get_admin_names(request),
    )
    example = csv_files.render_file(_EXAMPLE[0], _EXAMPLE[1:]).decode("utf-8-sig")
    return request.render(
        "batches/batch.html",
        next_step=tell_batch(request, parts["batch"]),
        **parts,
        advice=_ADVICE,
        example=example.replace("\r\n", "\n"),
        max_lines=MAX_LINES,
        max_bytes=_MAX_FILE_MEBIBYTES * MEBIBYTE,
        max_mebibytes=_MAX_FILE_MEBIBYTES,
    )


async def _load_preview(request: PageRequest, id: str, status: BatchLineStatus | None) -> Any:
    query = {"limit": _PREVIEW_SIZE} | ({} if status is None else {"status": status})
    return await request.get(_LINES_PATH, query, id=id)


@pages.get("/console/batches/{id}/lines")
async def list_lines(request: PageRequest, id: str) -> Reply[bytes]:
    parts = await gather_by_name(
        batch=request.get(_ITEM_PATH, id=id),
        page=request.get(_LINES_PATH, pick_filters(request, "status", "cursor"), id=id),
    )
    batch = parts["batch"]
    return request.render(
        "batches/lines.html",
        **parts,
        advice=_ADVICE,
        tabs=_count_lines(batch),
        next_step=tell_batch(request, batch),
    )


def _count_lines(batch: dict[str, Any]) -> dict[str, int]:
    """Return the number of lines by status, for the statuses that the batch has."""
    done = sum(batch[name] for name in ("paid", "failed", "invalid"))
    is_cancelled = batch["status"] == BatchStatus.CANCELLED
    counts = {
        BatchLineStatus.PAID.value: batch["paid"],
        BatchLineStatus.FAILED.value: batch["failed"],
        BatchLineStatus.INVALID.value: batch["invalid"],
        (BatchLineStatus.SKIPPED if is_cancelled else BatchLineStatus.PENDING).value: (
            batch["lines"] - done
        ),
    }
    return {status: count for status, count in counts.items() if count}


@pages.get("/console/batches/{id}/file")
async def download_lines(request: PageRequest, id: str) -> Reply[bytes]:
    query = {"format": "csv"} | pick_filters(request, "status")
    file: Reply[bytes] = await request.get(_LINES_PATH, query, id=id)
    return Reply(
        file.body, headers={**SECURITY_HEADERS, **file.headers}, content_type=file.content_type
    )


@pages.post("/console/batches/{id}/lines")
async def upload_lines(request: PageRequest, id: str) -> Reply[bytes]:
    path = f"/console/batches/{id}"
    try:
        await request.forward_body("PUT", f"{_LIST_PATH}/{id}/lines")
    except ApiError as error:
        if error.code in _ACCESS_CODES:
            raise
        return request.render("batches/upload_error.html", problems=_list_problems(request, error))
    return request.redirect(path, "Lines uploaded.")


def _list_problems(request: PageRequest, error: ApiError) -> list[str]:
    """Return what is wrong with a file, by row and column."""
    fields = (error.details or {}).get("fields", {})
    if not fields:
        return [end_sentence(request.translator.translate_error(error))]
    labels = {"file": request.translate("The file"), "body": request.translate("The file")}
    return [
        f"{describe_value_error(labels.get(name, name), message, request.translator)}."
        for name, message in fields.items()
    ]
