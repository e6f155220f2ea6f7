"""mypy infers the exact types in both modes."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("typing_samples.py")
ROOT = Path(__file__).parents[2]


def test_mypy_accepts_what_is_right_and_refuses_what_is_wrong() -> None:
    # In a process of its own: it changes the interpreter that it runs in.
    config = ["--config-file", str(ROOT / "pyproject.toml")]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *config, "--no-pretty", str(SOURCE)],
        check=False,  # it complains, as it should
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert not ran.stderr
    said = ran.stdout
    refused = {int(line) for line in re.findall(r"typed\.py:(\d+): error", said)}
    wrong = {
        number
        for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
        if line.endswith("# wrong")
    }
    assert refused == wrong, said
    assert "src/tapgate" not in said
