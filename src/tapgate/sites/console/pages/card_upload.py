"""Card upload: file format, upload form and per-row errors."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from tapgate.business.customers.cards.upload_parser import MAX_ROWS
from tapgate.http.api import csv_files
from tapgate.http.endpoint import MEBIBYTE, Reply
from tapgate.sites.console.form_errors import describe_value_error
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.rendering import end_sentence
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code

pages = Pages()

_UPLOAD_PATH: Final = "/api/v1/cards/upload-csv"
_MAX_FILE_MEBIBYTES: Final = 8
_MAX_LISTED_ERRORS: Final = 200
_COLUMNS: Final = ("Serial No.", "MAC Address", "Expiry Date", "Keyset")
_EXAMPLE_ROWS: Final = (
    ("Serial No.", "MAC Address", "Expiry Date"),
    ("TAP-000001", "04:A2:2B:1A:6F:80:01", "2031-12-31"),
    ("TAP-000002", "04:A2:2B:1A:6F:80:02", ""),
)
#: Handled by the site's error page or sign-in redirect, not shown as an upload error.
_ACCESS_CODES: Final = (Code.UNAUTHORIZED, Code.FORBIDDEN)


@pages.get("/console/cards/upload")
async def show_upload_form(request: PageRequest) -> Reply[bytes]:
    await request.require_access(
        f"POST {_UPLOAD_PATH}", message="Only system administrators can upload cards"
    )
    example = csv_files.render_file(_EXAMPLE_ROWS[0], _EXAMPLE_ROWS[1:])
    return request.render(
        "cards/upload.html",
        example=example.decode("utf-8-sig").replace("\r\n", "\n"),
        example_file=_build_data_url(example),
        max_rows=MAX_ROWS,
        max_bytes=_MAX_FILE_MEBIBYTES * MEBIBYTE,
        max_mebibytes=_MAX_FILE_MEBIBYTES,
    )


@pages.post("/console/cards/upload")
async def upload_cards(request: PageRequest) -> Reply[bytes]:
    try:
        result = await request.forward_body("POST", _UPLOAD_PATH)
    except ApiError as error:
        if error.code in _ACCESS_CODES:
            raise
        return request.render("cards/upload_error.html", message=_format_error(request, error))
    errors = result["errors"]
    return request.render(
        "cards/upload_result.html",
        result=result,
        listed_errors=[
            {**item, "error": _translate_row_error(request, item["error"])}
            for item in errors[:_MAX_LISTED_ERRORS]
        ],
        errors_file=_build_data_url(_encode_errors(errors)),
    )


def _format_error(request: PageRequest, error: ApiError) -> str:
    fields = (error.details or {}).get("fields", {})
    if not fields:
        return end_sentence(request.translator.translate_error(error))
    return " ".join(
        describe_value_error(request.translate("The file"), message, request.translator) + "."
        for message in fields.values()
    )


def _translate_row_error(request: PageRequest, message: str) -> str:
    """Translate a row's errors, each of which begins with a column name."""
    return "; ".join(_translate_problem(request, problem) for problem in message.split("; "))


def _translate_problem(request: PageRequest, message: str) -> str:
    for column in _COLUMNS:
        if message.startswith(f"{column} "):
            problem = message.removeprefix(f"{column} ")
            return describe_value_error(column, problem, request.translator)
    return request.translator.translate_message(message) or message


def _encode_errors(errors: Sequence[dict[str, Any]]) -> bytes:
    rows = ((str(item["row"]), item["serial"], item["error"]) for item in errors)
    return csv_files.render_file(("Row", "Serial No.", "Error"), rows)


def _build_data_url(content: bytes) -> str:
    """Return a data URL, so that the page contains the file itself."""
    return f"data:{csv_files.CONTENT_TYPE.replace(' ', '')},{quote(content)}"
