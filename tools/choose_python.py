"""Selects the Python interpreter for Tapgate, by version and speed.

    python3 tools/choose_python.py

Builds of the same version can differ in speed by a factor of 1.5: Linux distributions use
profile-guided optimization, many other builds do not. Each Python on the PATH therefore runs the
same small workload. They take turns many times, because other load on the machine affects single
measurements. Prints the path of the first usable interpreter, normally `python3`, or of the fastest
if that is more than 10 % faster. This script itself runs on any Python 3.
"""

import os
import statistics
import subprocess
import sys
import threading
from operator import truediv
from pathlib import Path

_EXECUTABLE_NAMES = ["python3"] + [f"python3.{minor}" for minor in range(11, 20)]
_MIN_SPEEDUP = 1.1
_ROUNDS = 50
_TIMEOUT_SECONDS = 30

#: Run by each interpreter. Fails if the interpreter is unusable. Prints what identifies the
#: interpreter, then for each line of input the seconds that the workload took.
_PROBE = """
import sys
if sys.version_info < (3, 11):
    sys.exit(1)
import ensurepip, os, venv
from time import perf_counter
print(os.path.realpath(sys.executable), flush=True)

class Order:
    def __init__(self, number, amount):
        self.number = number
        self.amount = amount

    def fee(self, rate):
        return self.amount * rate // 1000

def work():
    totals = {}
    for number in range(2_000):
        order = Order(number, number * 7)
        totals[number % 97] = totals.get(number % 97, 0) + order.fee(15)
    return ",".join([f"{key}:{total}" for key, total in totals.items()])

for _ in sys.stdin:
    started = perf_counter()
    work()
    print(perf_counter() - started, flush=True)
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


class Probe:
    """A running interpreter that measures the workload on request."""

    def __init__(self, python):
        self.python = python
        self.seconds = []
        self.process = subprocess.Popen(  # noqa: S603 - runs only interpreters from the PATH
            [python, "-c", _PROBE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            universal_newlines=True,
        )
        self.timeout = threading.Timer(_TIMEOUT_SECONDS, self.process.kill)
        self.timeout.start()
        self.identity = self.process.stdout.readline()

    def measure(self):
        try:
            self.process.stdin.write("measure\n")
            self.process.stdin.flush()
            self.seconds.append(float(self.process.stdout.readline()))
        except (OSError, ValueError):
            self.identity = ""

    def stop(self):
        self.timeout.cancel()
        self.process.kill()
        self.process.communicate()


def compute_speedup(slower, faster):
    # Other load affects neighboring measurements alike, so each pair is compared.
    return statistics.median(map(truediv, slower.seconds, faster.seconds))


def choose_python():
    probes = {}
    for python in list_candidates():
        try:
            probe = Probe(python)
        except OSError:
            continue
        # A version manager offers the same interpreter under several paths.
        if probes.setdefault(probe.identity, probe) is not probe:
            probe.stop()
    for _ in range(_ROUNDS):
        for probe in probes.values():
            if probe.identity:
                probe.measure()
    for probe in probes.values():
        probe.stop()
    usable = [probe for probe in probes.values() if probe.identity]
    if not usable:
        return None
    default = usable[0]
    fastest = max(usable, key=lambda probe: compute_speedup(default, probe))
    is_faster = compute_speedup(default, fastest) > _MIN_SPEEDUP
    return fastest.python if is_faster else default.python


if __name__ == "__main__":
    python = choose_python()
    if python is None:
        sys.exit(
            "Tapgate requires Python 3.11 or newer with the venv module (Debian: python3-venv): "
            "make PYTHON=/path/to/python3"
        )
    print(python)
