"""Types that mypy infers for both clients."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("typing_samples.py")
ROOT = Path(__file__).parents[2]


def test_mypy_rejects_exactly_the_lines_marked_wrong() -> None:
    # In a separate process: mypy modifies the interpreter that it runs in.
    config = ["--config-file", str(ROOT / "pyproject.toml")]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *config, "--no-pretty", str(SOURCE)],
        check=False,  # errors are expected
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert not ran.stderr
    output = ran.stdout
    refused = {int(line) for line in re.findall(r"typing_samples\.py:(\d+): error", output)}
    wrong = {
        number
        for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
        if line.endswith("# wrong")
    }
    assert refused == wrong, output
    assert "src/tapgate" not in output
