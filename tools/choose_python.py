"""Selection of the Python interpreter for Tapgate, by version and speed.

    python3 tools/choose_python.py

Builds of the same version can differ in speed by a factor of 1.5: Linux distributions use
profile-guided optimization, many other builds do not. Each Python on the PATH therefore runs the
same small workload. Prints the path of the first usable interpreter, normally `python3`, or of the
fastest if that is more than 15 % faster. This script itself runs on any Python 3.
"""

import os
import subprocess
import sys
from pathlib import Path

_EXECUTABLE_NAMES = ["python3"] + [f"python3.{minor}" for minor in range(11, 20)]
_MIN_SPEEDUP = 1.15
_PROBE_TIMEOUT_SECONDS = 30

#: Run by each interpreter. Fails if the interpreter is unusable, else prints its best time in
#: seconds.
_PROBE = """
import sys
if sys.version_info < (3, 11):
    sys.exit(1)
import ensurepip, venv
from time import perf_counter

class Order:
    def __init__(self, number, amount):
        self.number = number
        self.amount = amount

    def fee(self, rate):
        return self.amount * rate // 1000

def work():
    totals = {}
    for number in range(20_000):
        order = Order(number, number * 7)
        totals[number % 97] = totals.get(number % 97, 0) + order.fee(15)
    return ",".join([f"{key}:{total}" for key, total in totals.items()])

best = 60.0
for _ in range(5):
    started = perf_counter()
    work()
    best = min(best, perf_counter() - started)
print(best)
"""


def list_candidates():
    """Return the paths of all interpreters, `python3` first, each name in PATH order."""
    candidates = {}
    for name in _EXECUTABLE_NAMES:
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            path = Path(folder, name)
            if os.access(path, os.X_OK) and not path.is_dir():
                # The name is part of the key: a version manager's launcher is one file that
                # selects the version by the name with which it is called.
                candidates.setdefault((os.path.realpath(path), name), str(path))
    return list(candidates.values())


def measure_seconds(python):
    """Return the seconds that this Python takes for the workload, or None if it is unusable."""
    try:
        result = subprocess.run(  # noqa: S603 - runs only interpreters from the user's PATH
            [python, "-c", _PROBE],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PROBE_TIMEOUT_SECONDS,
            check=False,
        )
        return float(result.stdout) if result.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def choose_python():
    default = best = None
    for python in list_candidates():
        seconds = measure_seconds(python)
        if seconds is None:
            continue
        if default is None:
            default = (seconds, python)
        if best is None or seconds < best[0]:
            best = (seconds, python)
    if default is None or best is None:
        return None
    return best[1] if best[0] * _MIN_SPEEDUP < default[0] else default[1]


if __name__ == "__main__":
    python = choose_python()
    if python is None:
        sys.exit(
            "Tapgate requires Python 3.11 or newer with the venv module (Debian: python3-venv): "
            "make PYTHON=/path/to/python3"
        )
    print(python)
