"""Proofs: tests that `make proofs` runs, while `make test` runs all others.

`make test` is for everyone who changes something: all tests in process, and one browser journey per
surface. Proofs repeat that with complete installations: every page in Chromium, a cluster, load,
upgrades. They get the marker `proof`.
"""

from typing import Final

#: Path prefixes for proofs, by what they prove.
_PATHS_BY_SUBJECT: Final = {
    "pages": ["tests/browser/"],
    "clusters": ["tests/torture/test_cluster.py", "tests/tools/test_two_books.py"],
    "crashes and outages": [
        "tests/deploy/test_point_in_time_recovery.py",
        "tests/events/webhooks/test_processes.py",
        "tests/ledger/engine/test_processes.py",
        "tests/ledger/test_backup.py",
        "tests/messenger/journeys/test_processes.py",
        "tests/runtime/store/test_pgbouncer.py",
        "tests/server/gateway/test_database_outage.py",
        "tests/server/gateway/test_replication.py",
        "tests/server/test_supervisor.py",
        "tests/torture/test_torture.py",
        "tests/business/finance/batches/test_processes.py",
    ],
    "upgrades": [
        "tests/runtime/store/test_backup_upgrade.py",
        "tests/runtime/store/test_idempotency_key_upgrade.py",
        "tests/runtime/store/test_schema_upgrade.py",
        "tests/torture/test_upgrade.py",
    ],
    "recipes": ["tests/docs/test_contributing.py::test_recipe_makes_the_change"],
    "generated clients and real providers": [
        "tests/generators/",
        "tests/single_sign_on/test_real_provider.py",
    ],
    "hostile input and CPU budgets": [
        "tests/bench/test_finance.py",
        "tests/bench/test_growth.py",
        "tests/bench/test_payments.py",
        "tests/bench/test_storage.py",
        "tests/fuzz/test_small_run.py",
        "tests/http/api/test_worst_case_requests.py",
        "tests/server/gateway/test_public_cpu_budget.py",
        "tests/soak/",
    ],
    "commands and first starts": [
        "tests/cli/test_backup.py",
        "tests/cli/test_cli.py",
        "tests/journeys/test_process_consistency.py",
        "tests/messenger/test_startup.py",
        "tests/runtime/store/test_backup.py",
        "tests/runtime/store/test_backup_by_url.py",
        "tests/runtime/store/test_embedded_postgres.py",
        "tests/sandbox/demo/test_first_start.py",
        "tests/sandbox/test_production.py",
        "tests/server/gateway/test_report_processes.py",
        "tests/test_readme.py",
        "tests/tools/test_release_build.py",
    ],
}
PATHS: Final = tuple(path for paths in _PATHS_BY_SUBJECT.values() for path in paths)
#: Browser tests that are not proofs: one journey per surface, without the folder.
_JOURNEYS: Final = {
    "console": "test_system.py::test_api_key_is_created_used_and_revoked",
    "guide": "test_guide.py::test_guide_is_searched_navigated_and_accessible",
    "phone": "test_phone_simulator.py::test_transfer_to_a_friend_with_a_wrong_and_a_correct_pin",
    "portal": "test_portal.py::test_manager_signs_in_and_sees_the_latest_payments",
    "pos": "test_pos_simulator.py::test_payment_links_to_its_ledger_entries",
    "tap_page": "test_phone_simulator.py::test_page_of_a_tapped_card_continues_in_the_chat",
    "verify_page": "test_verify_page.py::test_proof_is_checked_in_the_browser",
}
JOURNEYS: Final = {surface: f"tests/browser/{test}" for surface, test in _JOURNEYS.items()}
#: Values of pytest's option `-m` in `make test` and `make proofs`.
WITHOUT_PROOFS: Final = "not proof"
ONLY_PROOFS: Final = "proof"


def is_proof(test: str) -> bool:
    """Return whether a test is a proof, by its path and name without parameters."""
    return test.startswith(PATHS) and test not in JOURNEYS.values()


def is_irrelevant(file: str, selection: str) -> bool:
    """Return whether a test file has no test that `selection` selects.

    Such a file need not be imported.
    """
    if selection == ONLY_PROOFS:
        return not any(path.startswith(file) for path in PATHS) and not file.startswith(PATHS)
    if selection == WITHOUT_PROOFS:
        has_journey = any(test.startswith(file) for test in JOURNEYS.values())
        return file.startswith(PATHS) and not has_journey
    return False
