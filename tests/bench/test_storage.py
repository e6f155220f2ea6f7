"""Storage benchmark at small scale: which tables a payment with all its records grows."""

import re

from bench.runner import run_benchmark

TABLES = {"transactions", "entries", "idempotency_keys", "events", "deliveries", "request_logs"}
#: An event that stored its transaction took more than 1,000.
MAX_EVENT_BYTES = 250


async def test_payment_with_a_webhook_grows_the_tables_that_sizing_lists() -> None:
    output = await run_benchmark(
        "bench.storage", "--seconds", "2", "--phases", "1", "--cards", "200"
    )
    found = re.findall(r"^(\w+) +-?[\d,]+ +([\d,]+)$", output, re.MULTILINE)
    sizes = {name: int(size.replace(",", "")) for name, size in found}
    assert sizes.keys() >= {*TABLES, "messages", "total"}
    assert sizes["events"] < MAX_EVENT_BYTES
    assert sizes["total"] >= sum(sizes[name] for name in TABLES)
