"""Order in which tests start, and tests that share a process."""

from typing import Final

#: Folders and files whose tests one process runs, because they share a fixture that takes long to
#: create, such as a demo installation. Longest first: their tests start before all others, so that
#: all processes finish at about the same time.
_SINGLE_PROCESS_PATHS: Final = (
    "tests/browser/",
    "tests/journeys/",
    "tests/server/gateway/",
    "tests/torture/test_cluster.py",
    "tests/torture/",
    "tests/server/test_supervisor.py",
    "tests/runtime/store/test_embedded_postgres.py",
    "tests/fuzz/",
    "tests/sandbox/demo/",
    "tests/docs/",
)


#: Files with long tests, each of which any process may run. They start next.
_LONG_TEST_PATHS: Final = (
    "tests/bench/",
    "tests/generators/",
    "tests/runtime/store/test_schema_upgrade.py",
    "tests/messenger/understanding/",
    "tests/runtime/store/test_backup",
    "tests/sandbox/test_production.py",
    "tests/sites/console/test_restricted.py",
    "tests/http/api/test_worst_case_requests.py",
    "tests/secret_leaks/",
    "tests/test_readme.py",
    "tests/cli/test_cli.py",
    "tests/ledger/archive/",
    "tests/cli/test_backup.py",
    "tests/messenger/test_startup.py",
    "tests/business/payments/wallets/test_statement_files.py",
    "tests/business/payments/transactions/test_lists.py",
    "tests/cli/rekey/",
)
_START_ORDER: Final = (*_SINGLE_PROCESS_PATHS, *_LONG_TEST_PATHS)


def get_single_process_path(nodeid: str) -> str | None:
    return next((path for path in _SINGLE_PROCESS_PATHS if nodeid.startswith(path)), None)


def get_start_rank(nodeid: str) -> int:
    ranks = (rank for rank, path in enumerate(_START_ORDER) if nodeid.startswith(path))
    return next(ranks, len(_START_ORDER))
