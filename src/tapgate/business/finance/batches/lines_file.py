"""CSV file with a batch's lines and their results. Performs no I/O."""

from collections.abc import Iterable

from tapgate.business.finance.batches.model import StoredLine, to_line_record
from tapgate.http.api import csv_files
from tapgate_client.schemas.batches import BatchLineRecord

_COLUMNS = BatchLineRecord.__struct_fields__


def render_lines(lines: Iterable[StoredLine], currency: str) -> bytes:
    return csv_files.render_file(
        _COLUMNS, (_render_cells(to_line_record(line, currency)) for line in lines)
    )


def _render_cells(record: BatchLineRecord) -> list[str]:
    values = (getattr(record, name) for name in _COLUMNS)
    return ["" if value is None else str(value) for value in values]
