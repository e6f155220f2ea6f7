"""Reading of exported CSV files."""

import codecs
import csv
import io


def read_rows(content: bytes) -> list[list[str]]:
    """Return the rows of a CSV file, which must start with one byte-order mark."""
    assert content.startswith(codecs.BOM_UTF8), content[:100]
    text = content.decode("utf-8-sig")
    assert not text.startswith("\ufeff")
    return list(csv.reader(io.StringIO(text, newline="")))


def read_records(content: bytes) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column."""
    columns, *rows = read_rows(content)
    return [dict(zip(columns, row, strict=True)) for row in rows]
