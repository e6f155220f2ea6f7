"""Finance benchmark: a batch and two day closes beside payments, with books that hold."""

from bench.runner import run_benchmark


async def test_small_run_pays_the_batch_and_closes_both_days() -> None:
    output = await run_benchmark("bench.finance", "--lines=300", "--entries=4000", "--rate=20")
    rows = [line.split(" | ")[0].removeprefix("| ") for line in output.splitlines()]
    assert rows[2:4] == ["payments alone", "upload of 300 lines"]
    assert "close of a day with 4,000 entries" in rows
    assert "The books hold: " in rows[-1]
