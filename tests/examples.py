"""Number of random examples per test: fewer in `make test`, all of them in `make fuzz`."""

import os


def limit_examples(count: int) -> int:
    """Return `count` if TAPGATE_EXAMPLES is `all`, else a part of it."""
    return count if os.environ.get("TAPGATE_EXAMPLES") == "all" else max(10, count * 2 // 5)
