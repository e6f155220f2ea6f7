"""Types that mypy infers for both clients."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("typing_samples.py")
ROOT = Path(__file__).parents[2]


def test_mypy_rejects_exactly_the_lines_marked_wrong() -> None:
    # Run mypy in a separate process, because it modifies the interpreter that it runs in.
    config = ["--config-file", str(ROOT / "pyproject.toml")]
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *config, "--no-pretty", str(SOURCE)],
        check=False,  # errors are expected
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert not result.stderr
    output = result.stdout
    rejected = {int(line) for line in re.findall(r"typing_samples\.py:(\d+): error", output)}
    marked = {
        number
        for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
        if line.endswith("# wrong")
    }
    assert rejected == marked, output
    assert "src/tapgate" not in output
