"""Card upload: file format, upload form and per-row errors."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from tapgate.cards.upload_file import MAX_ROWS
from tapgate.console.page_request import PageRequest
from tapgate.console.site import Pages
from tapgate.edge import csv_files
from tapgate.edge.endpoint import MEBIBYTE, Reply
from tapgate.errors import ApiError, Code

pages = Pages()

_UPLOAD_PATH: Final = "/api/v1/cards/upload-csv"
_MAX_FILE_MEBIBYTES: Final = 8
_MAX_LISTED_ERRORS: Final = 200
_EXAMPLE_ROWS: Final = (
    ("Serial No.", "MAC Address", "Expiry Date"),
    ("TAP-000001", "04:A2:2B:1A:6F:80:01", "2031-12-31"),
    ("TAP-000002", "04:A2:2B:1A:6F:80:02", ""),
)
#: Handled by the site's error page or sign-in redirect, not shown as an upload error.
_ACCESS_CODES: Final = (Code.UNAUTHORIZED, Code.FORBIDDEN)


@pages.get("/console/cards/upload")
async def show_upload_form(visit: PageRequest) -> Reply[bytes]:
    await visit.require_access(
        f"POST {_UPLOAD_PATH}", sentence="Only system administrators upload cards"
    )
    example = csv_files.render_csv(_EXAMPLE_ROWS)
    return visit.render(
        "cards/upload.html",
        example=example.decode().replace("\r\n", "\n"),
        example_file=_build_data_url(example),
        most_rows=MAX_ROWS,
        largest=_MAX_FILE_MEBIBYTES * MEBIBYTE,
        largest_mebibytes=_MAX_FILE_MEBIBYTES,
    )


@pages.post("/console/cards/upload")
async def upload_cards(visit: PageRequest) -> Reply[bytes]:
    try:
        uploaded = await visit.forward_body("POST", _UPLOAD_PATH)
    except ApiError as error:
        if error.code in _ACCESS_CODES:
            raise
        return visit.render("cards/not_uploaded.html", sentence=_format_error(error))
    errors = uploaded["errors"]
    return visit.render(
        "cards/uploaded.html",
        uploaded=uploaded,
        shown=errors[:_MAX_LISTED_ERRORS],
        errors_file=_build_data_url(_encode_errors(errors)),
    )


def _format_error(error: ApiError) -> str:
    fields = (error.details or {}).get("fields", {})
    if not fields:
        return error.message or f"{error.error}."
    return " ".join(f"The {name} {sentence}." for name, sentence in fields.items())


def _encode_errors(errors: Sequence[dict[str, Any]]) -> bytes:
    rows = (
        (
            str(one["row"]),
            csv_files.escape_formulas(one["serial"]),
            csv_files.escape_formulas(one["error"]),
        )
        for one in errors
    )
    return csv_files.render_csv([("Row", "Serial No.", "Error"), *rows])


def _build_data_url(content: bytes) -> str:
    """Return a data URL, so that the page contains the file itself."""
    return f"data:{csv_files.CONTENT_TYPE.replace(' ', '')},{quote(content)}"
