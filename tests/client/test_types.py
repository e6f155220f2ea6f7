"""mypy infers the exact types in both modes."""

import re
from pathlib import Path

from mypy import api

SOURCE = Path(__file__).with_name("typed.py")
ROOT = Path(__file__).parents[2]


def test_mypy_accepts_what_is_right_and_refuses_what_is_wrong() -> None:
    said, complaint, _ = api.run(
        ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--no-pretty", str(SOURCE)]
    )
    assert not complaint
    refused = {int(line) for line in re.findall(r"typed\.py:(\d+): error", said)}
    wrong = {
        number
        for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
        if line.endswith("# wrong")
    }
    assert refused == wrong, said
    assert "src/tapgate" not in said
