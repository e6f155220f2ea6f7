"""New cards by the file: what it must look like, its way here, and what came of every row."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from tapgate.cards.upload_file import MAX_ROWS
from tapgate.console.site import Pages
from tapgate.console.visit import Visit
from tapgate.edge import csv_files
from tapgate.edge.endpoint import MEBIBYTE, Reply
from tapgate.errors import ApiError, Code

pages = Pages()

_UPLOAD: Final = "/api/v1/cards/upload-csv"
_LARGEST_MEBIBYTES: Final = 8
_SHOWN_ERRORS: Final = 200
_EXAMPLE: Final = (
    ("Serial No.", "MAC Address", "Expiry Date"),
    ("TAP-000001", "04:A2:2B:1A:6F:80:01", "2031-12-31"),
    ("TAP-000002", "04:A2:2B:1A:6F:80:02", ""),
)
#: Whose page it is not, or not any more, is told so by the page's own means.
_NOT_ABOUT_THE_FILE: Final = (Code.UNAUTHORIZED, Code.FORBIDDEN)


@pages.get("/console/cards/upload")
async def upload_form(visit: Visit) -> Reply[bytes]:
    await visit.require(f"POST {_UPLOAD}", sentence="Only system administrators upload cards")
    example = csv_files.render_csv(_EXAMPLE)
    return visit.page(
        "cards/upload.html",
        example=example.decode().replace("\r\n", "\n"),
        example_file=_file(example),
        most_rows=MAX_ROWS,
        largest=_LARGEST_MEBIBYTES * MEBIBYTE,
        largest_mebibytes=_LARGEST_MEBIBYTES,
    )


@pages.post("/console/cards/upload")
async def upload(visit: Visit) -> Reply[bytes]:
    try:
        uploaded = await visit.pass_on("POST", _UPLOAD)
    except ApiError as error:
        if error.code in _NOT_ABOUT_THE_FILE:
            raise
        return visit.page("cards/not_uploaded.html", sentence=_sentence(error))
    errors = uploaded["errors"]
    return visit.page(
        "cards/uploaded.html",
        uploaded=uploaded,
        shown=errors[:_SHOWN_ERRORS],
        errors_file=_file(_written(errors)),
    )


def _sentence(error: ApiError) -> str:
    fields = (error.details or {}).get("fields", {})
    if not fields:
        return f"{error.message or error.error}."
    return " ".join(f"The {name} {sentence}." for name, sentence in fields.items())


def _written(errors: Sequence[dict[str, Any]]) -> bytes:
    rows = (
        (
            str(one["row"]),
            csv_files.escape_formulas(one["serial"]),
            csv_files.escape_formulas(one["error"]),
        )
        for one in errors
    )
    return csv_files.render_csv([("Row", "Serial No.", "Error"), *rows])


def _file(content: bytes) -> str:
    """The address of a file that is in the page already."""
    return f"data:{csv_files.CONTENT_TYPE.replace(' ', '')},{quote(content)}"
