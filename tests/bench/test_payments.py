"""Payment benchmark at small scale: every result is present and the ledger is consistent."""

import json
import os
from pathlib import Path

from bench.runner import ROOT, list_missing_values, run_benchmark

READS = {"replays", "balances", "lists", "statements"}
WORKLOADS = {"few_cards", "proofs", "hot", "webhooks", "transfers"} | READS


async def test_small_run_has_every_figure_and_a_consistent_ledger(public_tmp_path: Path) -> None:
    (public_tmp_path / "docs").mkdir()
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    (public_tmp_path / "docs" / "benchmarks.md").write_text(page)
    sizes = ("--seconds", "0.1", "--rounds", "1", "--cards", "100", "--scale", "1")
    sizes += ("--overload", "40")
    output = await run_benchmark(
        "bench.payments", *sizes, "--folder", str(public_tmp_path), "--root", str(public_tmp_path)
    )
    results = json.loads((public_tmp_path / "bench" / "results" / "latest.json").read_text())

    books = results["books"]
    assert books["hold"]
    assert books["approved"] == books["completed"] > 0
    assert [phase["connections"] for phase in results["payments"]] == [1, 16, 64, 256]
    assert [phase["clients"] for phase in results["tpcb"]] == [1, 8, 16, 32]
    assert {phase["kind"] for phase in results["others"]} == WORKLOADS
    for phase in (*results["payments"], *results["others"]):
        assert phase["declined"] == {}
        assert phase["answered"] > 0
        assert phase["p50_ms"] <= phase["p99_ms"]
        assert (phase["batches"] is None) == (phase["kind"] in READS)
        assert (phase["replayed"] == phase["answered"]) == (phase["kind"] == "replays")
    overload = results["overload"]
    assert overload["phase"]["connections"] == 40
    assert overload["phase"]["per_second"] > 0
    assert overload["ratio"] > 0
    # Other phases and the warm-up count too.
    assert results["memory"]["requests"] >= sum(p["answered"] for p in results["payments"])
    assert len(results["memory"]["workers_before_mb"]) == len(results["memory"]["workers_mb"]) == 2
    assert [len(after["workers_mb"]) for after in results["memory"]["rounds"]] == [2]
    best_payments = max(phase["per_second"] for phase in results["payments"])
    best_tpcb = max(phase["per_second"] for phase in results["tpcb"])
    assert results["ratio"]["ratio"] == round(best_payments / best_tpcb, 2)
    assert results["ratio"]["by_round"] == [results["ratio"]["ratio"]]  # there is one round
    allowed = (".declined", ".batches")
    assert not [path for path in list_missing_values(results) if not path.endswith(allowed)]

    written = (public_tmp_path / "docs" / "benchmarks.md").read_text()
    assert f"**Ratio: {results['ratio']['ratio']:.2f}.**" in written
    assert f"**Ratio: {results['ratio']['ratio']:.2f}.**" in output
    assert "With one connection, a payment takes" in written
    assert "At overload, with 40 connections" in written
    for subject in (
        "Payments with a card's proof",
        "Payments with a webhook",
        "P2P transfers with a receipt",
    ):
        assert f"{subject} run at" in written
    assert "## Method" in written
    assert (public_tmp_path / "docs" / "benchmarks.svg").read_text().count("<rect ") == 6
    assert set(os.listdir(public_tmp_path)) == {"bench", "docs"}  # noqa: PTH208 - data is deleted


async def test_page_matches_the_stored_results(public_tmp_path: Path) -> None:
    stored = [
        Path("bench/results/latest.json"),
        Path("docs/benchmarks.md"),
        Path("docs/benchmarks.svg"),
    ]
    for path in stored:
        (public_tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (public_tmp_path / path).write_bytes((ROOT / path).read_bytes())
    await run_benchmark("bench.payments.report", str(public_tmp_path))
    for path in stored:
        assert (public_tmp_path / path).read_bytes() == (ROOT / path).read_bytes(), path
