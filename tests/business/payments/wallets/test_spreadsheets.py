"""Exported files, opened with LibreOffice."""

import codecs
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from builders.statements import build_statement
from drivers.csv_files import read_records, read_rows
from tapgate.business.payments.wallets.statements import csv_file

SOFFICE = shutil.which("soffice")
#: Fields separated by commas, text in double quotes, UTF-8. The import dialog selects UTF-8 because
#: of the byte-order mark; without the dialog, the option does.
OPTIONS = "44,34,76,1"

needs_libreoffice = pytest.mark.skipif(SOFFICE is None, reason="LibreOffice Calc is not installed")


def open_with_libreoffice(content: bytes, folder: Path) -> bytes:
    """Open a file as in the import dialog and save it again."""
    (folder / "in.csv").write_bytes(content)
    assert SOFFICE is not None
    done = subprocess.run(
        [
            SOFFICE, f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless",
            f"--infilter=CSV:{OPTIONS}",
            "--convert-to", f"csv:Text - txt - csv (StarCalc):{OPTIONS}",
            "--outdir", folder / "out", folder / "in.csv",
        ],
        env={**os.environ, "HOME": str(folder), "LC_ALL": "C"},
        capture_output=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return (folder / "out" / "in.csv").read_bytes()


@needs_libreoffice
def test_libreoffice_shows_accents_and_the_columns_of_a_statement(tmp_path: Path) -> None:
    movement = (
        build_statement(1)
        .movements[0]
        ._replace(counterparty="Aïssatou Kébé", memo="=1+1, école, ﬁn")
    )
    content = csv_file.render(build_statement(0, movements=[movement], opening_balance=1000))
    opening, row = read_records(content)
    columns, *shown = read_rows(codecs.BOM_UTF8 + open_with_libreoffice(content, tmp_path))
    assert columns == list(opening)
    assert [line[columns.index("description")] for line in shown] == [
        "Opening balance", row["description"],
    ]  # fmt: skip
    assert "Aïssatou Kébé: =1+1, école, ﬁn" in row["description"]
    assert {line[columns.index("currency")] for line in shown} == {"SLE"}
    # Recognized as a time, which is shown in the locale's format.
    assert shown[1][columns.index("time")] in (row["time"], "12:00:00 AM")
