"""Finance reports as files."""

import asyncio
from typing import Any, Final

import msgspec

from tapgate.business.branding.operations import get_branding
from tapgate.business.finance.reports.documents import Document
from tapgate.http.api import csv_files
from tapgate.http.api.services import Services
from tapgate.http.endpoint import Reply

PDF_CONTENT_TYPE: Final = "application/pdf"
MEDIA: Final = ("application/json", "text/csv", PDF_CONTENT_TYPE)


async def build_reply(
    services: Services, file_format: str, document: Document, record: msgspec.Struct | None = None
) -> Reply[Any]:
    """Return a report as a file, or as JSON if it has a record."""
    name = f"{document.file_name}.{file_format}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if file_format == "json":
        return Reply(record)
    if file_format == "csv":
        content = csv_files.render_file([column.name for column in document.columns], document.rows)
        return Reply(content, headers=headers, content_type=csv_files.CONTENT_TYPE)
    # reportlab takes long to import, so only processes that render a PDF file import it.
    from tapgate.business.finance.reports import pdf_table  # noqa: PLC0415

    branding = await get_branding(
        await services.get_report_database(), services.settings, services.clock()
    )
    content = await asyncio.to_thread(pdf_table.render, document, branding)
    return Reply(content, headers=headers, content_type=PDF_CONTENT_TYPE)
