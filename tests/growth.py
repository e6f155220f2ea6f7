"""CPU time growth with text length, which does not depend on the machine's speed."""

import time
from collections.abc import Callable


def measure_growth(function: Callable[[str], object], unit: str, length: int) -> float:
    """Return how much more CPU time a text of four times the length takes.

    The texts repeat a unit. Linear time grows 4 times, quadratic time 16 times.
    """

    def measure_seconds(text: str) -> float:
        started = time.thread_time()
        for _ in range(5):
            function(text)
        return time.thread_time() - started

    short, long = ((unit * size)[:size] for size in (length, 4 * length))
    return min(measure_seconds(long) for _ in range(7)) / min(
        measure_seconds(short) for _ in range(7)
    )
