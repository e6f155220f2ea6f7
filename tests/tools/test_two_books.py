"""A small version of `make two-books`: transfers between two installations under kills."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_transfers_between_two_installations_survive_kills_on_both_sides() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tools.two_books", "--transfers", "40", "--kills", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 lost, 0 doubled" in result.stdout
    assert "both clearing accounts are 0.00" in result.stdout
