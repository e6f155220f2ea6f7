"""Number of random examples per test: fewer in `make test`, all of them in `make fuzz`."""

import os


def is_complete() -> bool:
    """Return whether tests run all examples."""
    return os.environ.get("TAPGATE_EXAMPLES") == "all"


def limit_examples(count: int) -> int:
    """Return `count` if tests run all examples, else a part of it."""
    return count if is_complete() else max(10, count * 2 // 5)
