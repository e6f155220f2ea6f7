"""Percentiles of a load, also if hardly any payment was due."""

import math
from collections import Counter

from bench.payments.steady_load import LoadSummary


def test_percentiles_of_few_and_many_payments() -> None:
    def summarize(*latencies: float) -> tuple[float, float]:
        summary = LoadSummary(list(latencies), Counter(), 1.0)
        return summary.p50, summary.p99

    assert all(map(math.isnan, summarize()))
    assert summarize(0.002) == (2, 2)
    assert summarize(0.004, 0.001, 0.002) == (2, 4)
    assert summarize(*(number / 1000 for number in range(100, 0, -1))) == (50, 99)
