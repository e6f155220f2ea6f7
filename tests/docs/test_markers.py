"""Every test file has a marker, and pyproject.toml describes every marker."""

import tomllib
from pathlib import Path

import markers
from cases import each
from suite import list_tests

ROOT = Path(__file__).parents[2]


def test_every_test_file_has_a_marker() -> None:
    for file in (ROOT / "tests").rglob("test_*.py"):
        path = file.relative_to(ROOT)
        names = list_tests(file) or {""}
        assert all(markers.list_markers(f"{path}::{name}") for name in names), path


def test_every_marker_is_described() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert {line.partition(":")[0] for line in options["markers"]} == {
        *markers.list_declared(),
        "proof",
    }


@each(
    "name, expected",
    [
        (
            "tests/business/merchants/pos/test_refunds.py::test_any_key_can_refund",
            {"refund", "payment"},
        ),
        (
            "tests/business/payments/wallets/test_fee_rules.py::test_mapping",
            {"fees", "wallets", "compliance"},
        ),
    ],
)
def test_words_of_a_path_select_markers(name: str, expected: set[str]) -> None:
    assert markers.list_markers(name) == expected
