"""Types that mypy infers for both clients, accepted arguments and imported modules."""

import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from client.operation_catalog import RecordingTransport
from tapgate_client import TapgateClient, encoding
from tapgate_client import money as kernel
from tapgate_client.client import BaseClient

SOURCE = Path(__file__).with_name("typing_samples.py")
ROOT = Path(__file__).parents[2]


def test_mypy_rejects_exactly_the_lines_marked_wrong() -> None:
    # Run mypy in a separate process, because it modifies the interpreter that it runs in.
    config = ["--config-file", str(ROOT / "pyproject.toml")]
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *config, "--no-pretty", str(SOURCE)],
        check=False,  # errors are expected
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert not result.stderr
    output = result.stdout
    rejected = {int(line) for line in re.findall(r"typing_samples\.py:(\d+): error", output)}
    marked = {
        number
        for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
        if line.endswith("# wrong")
    }
    assert rejected == marked, output
    assert "/src/" not in output


_PROGRAM = """
import sys
import sysconfig
sysconfig.get_config_vars()  # may import a module named after the platform
before = set(sys.modules)
from tapgate_client import *
import pkgutil, tapgate_client
for module in pkgutil.walk_packages(tapgate_client.__path__, "tapgate_client."):
    __import__(module.name)
print("\\n".join(sys.modules.keys() - before))
"""
#: Dependencies of `tapgate-client`, with what httpx2 installs, and Brotli, which httpx2 imports if
#: the gateway has installed it.
ALLOWED_PACKAGES = {
    "anyio", "certifi", "h11", "httpcore2", "httpx2", "idna", "msgspec", "tapgate_client",
    "truststore", "typing_extensions", "brotli", "_brotli",
}  # fmt: skip


def test_client_imports_only_its_dependencies_and_the_standard_library() -> None:
    result = subprocess.run(
        [sys.executable, "-I", "-c", _PROGRAM], check=True, capture_output=True, text=True
    )
    packages = {name.partition(".")[0] for name in result.stdout.split()}
    assert "tapgate_client" in packages
    assert packages - sys.stdlib_module_names <= ALLOWED_PACKAGES


RECORDED_OPERATIONS: Any = BaseClient(RecordingTransport())


@given(st.decimals(min_value="0.01", max_value="999999999999.99", places=2))
def test_decimal_amount_is_encoded_exactly(amount: Decimal) -> None:
    assert kernel.parse(encoding.encode_amount(amount), "SLE") == int(amount * 100)


def test_decimal_amount_is_encoded_without_exponent() -> None:
    assert encoding.encode_amount(Decimal("1E+3")) == "1000"
    assert encoding.encode_amount("12.50") == "12.50"


@each("amount", [1.5, 1, True, None, b"1"])
def test_amount_of_another_type_is_rejected(amount: Any) -> None:
    with pytest.raises(TypeError):
        RECORDED_OPERATIONS.partners.fund("ptn_1", amount=amount)
    with pytest.raises(TypeError):
        RECORDED_OPERATIONS.account_rules.update(1, max_balance=amount or 0.0)


@each("amount", ["NaN", "Infinity", "-Infinity", "sNaN"])
def test_amount_must_be_finite(amount: str) -> None:
    with pytest.raises(ValueError, match="finite"):
        encoding.encode_amount(Decimal(amount))


def test_datetimes_are_encoded_in_utc_and_require_a_time_zone_unlike_dates() -> None:
    assert encoding.encode_date(date(2026, 1, 31)) == "2026-01-31"
    assert encoding.encode_date("2026-01-31") == "2026-01-31"
    east = datetime(2026, 1, 31, 2, tzinfo=timezone(timedelta(hours=2)))
    assert encoding.encode_datetime(east) == "2026-01-31T00:00:00.000Z"
    assert encoding.encode_datetime(date(2026, 1, 31)) == "2026-01-31"
    with pytest.raises(TypeError):
        encoding.encode_date(datetime(2026, 1, 31, tzinfo=UTC))
    with pytest.raises(ValueError, match="time zone"):
        encoding.encode_datetime(datetime(2026, 1, 31))  # noqa: DTZ001


@each("identifier", ["", ".", ".."])
def test_identifier_that_would_change_the_path_is_rejected(identifier: str) -> None:
    with pytest.raises(ValueError, match="an ID must not be empty"):
        RECORDED_OPERATIONS.subscribers.get(identifier)


def test_identifier_is_encoded_as_one_path_segment() -> None:
    operation = RECORDED_OPERATIONS.subscribers.get("a/b?c#d%2F..é")
    assert operation.target == "/api/v1/subscribers/a%2Fb%3Fc%23d%252F..%C3%A9"


def test_request_id_is_generated_for_each_call_unless_given() -> None:
    request_ids = {
        RECORDED_OPERATIONS.partners.fund("ptn_1", amount="1").request_id for _ in range(3)
    }
    assert len(request_ids) == 3
    operation = RECORDED_OPERATIONS.partners.fund("ptn_1", amount="1", request_id="mine")
    assert operation.request_id == "mine"


@each("url", ["", "gateway", "ftp://gateway", "https://", "https://pay?x=1"])
def test_invalid_base_url_is_rejected_by_the_constructor(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        TapgateClient(url)


@each(
    "args, kwargs",
    [
        ((), {}),
        (("ptn_1", "ptn_2"), {"amount": "1"}),
        (("ptn_1",), {}),
        (("ptn_1",), {"id": "ptn_1", "amount": "1"}),
        (("ptn_1",), {"amount": "1", "amonut": "1"}),
    ],
)
def test_missing_surplus_or_unknown_argument_is_rejected(
    args: tuple[str, ...], kwargs: dict[str, str]
) -> None:
    with pytest.raises(TypeError, match="argument"):
        RECORDED_OPERATIONS.partners.fund(*args, **kwargs)


def test_read_with_a_pin_is_not_repeatable() -> None:
    """An incorrect PIN counts toward the PIN lock."""
    period = {"subscriber_id": "sub_1", "from_date": "2026-01-01", "to_date": "2026-01-31"}
    create_statement = RECORDED_OPERATIONS.wallet.create_statement
    assert create_statement(**period).is_repeatable
    assert not create_statement(**period, pin="4071").is_repeatable
