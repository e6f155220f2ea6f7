"""Exceptions: one class per error code, derived from the class for declines or for its status."""

import pickle
import re
from decimal import Decimal
from pathlib import Path

import pytest

from tapgate.client import exceptions
from tapgate.client.exceptions.base import ErrorResponse, build_api_error, get_class_for_status
from tapgate.errors import TABLE, Code

DOCUMENT = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
#: Codes recorded as a failed transaction, according to the documentation of each code.
DECLINES = set(re.findall(r"### (\w+)\n\n\*\*\d+\*\* · `request_id`: consumed", DOCUMENT))


def build_error(code: str, status: int = 400, **details: object) -> ErrorResponse:
    return ErrorResponse(
        status=status, code=code, error="Request failed", details=details, request_id="r-1"
    )


@pytest.mark.parametrize("code", TABLE)
def test_every_error_code_has_its_exception_class(code: Code) -> None:
    status, _ = TABLE[code]
    error = build_api_error(build_error(code, status))
    name = "".join(word.capitalize() for word in code.split("_")).removesuffix("Error") + "Error"
    assert type(error) is getattr(exceptions, name)
    assert type(error).CODE is code
    assert (error.code, error.status, error.request_id) == (code, status, "r-1")
    assert isinstance(
        error,
        exceptions.TransactionDeclinedError if code in DECLINES else get_class_for_status(status),
    )
    assert isinstance(error, exceptions.TransactionDeclinedError) == (code in DECLINES)


def test_documentation_marks_declines_as_consuming_the_request_id() -> None:
    assert {"INSUFFICIENT_FUNDS", "DAILY_LIMIT_EXCEEDED", "CARD_NOT_ACTIVE"} < DECLINES


@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        (400, exceptions.BadRequestError),
        (401, exceptions.UnauthorizedError),
        (402, exceptions.TransactionDeclinedError),
        (403, exceptions.ForbiddenError),
        (404, exceptions.NotFoundError),
        (409, exceptions.ConflictError),
        (418, exceptions.BadRequestError),
        (422, exceptions.BadRequestError),
        (429, exceptions.RetryableError),
        (500, exceptions.ServerError),
        (503, exceptions.RetryableError),
    ],
)
def test_unknown_code_gets_the_class_of_its_status(
    status: int, error_class: type[exceptions.ApiError]
) -> None:
    error = build_api_error(build_error("FROM_THE_FUTURE", status))
    assert type(error) is error_class
    assert error.code == "FROM_THE_FUTURE"


def test_error_details_are_available_as_attributes() -> None:
    funds = build_api_error(
        build_error("INSUFFICIENT_FUNDS", 402, available=100.0, required=507.51)
    )
    assert isinstance(funds, exceptions.InsufficientFundsError)
    assert (funds.available, funds.required) == (Decimal("100.0"), Decimal("507.51"))
    limit = build_api_error(
        build_error("DAILY_LIMIT_EXCEEDED", 403, limit="5", used="4", attempted="2")
    )
    assert isinstance(limit, exceptions.LimitExceededError)
    assert (limit.limit, limit.used, limit.attempted) == ("5", "4", "2")
    locked = build_api_error(
        build_error("ACCOUNT_LOCKED", 403, locked_until="2026-01-31T10:00:00.000Z")
    )
    assert isinstance(locked, exceptions.AccountLockedError)
    assert locked.locked_until == "2026-01-31T10:00:00.000Z"
    field = build_api_error(build_error("VALIDATION_FAILED", 422, fields={"amount": "is too much"}))
    assert isinstance(field, exceptions.BadRequestError)
    assert field.fields == {"amount": "is too much"}
    assert build_api_error(build_error("CARD_NOT_ACTIVE", 403, party="sender")).party == "sender"


@pytest.mark.parametrize("value", [None, [], {"a": 1}, True, "4071"])
def test_malformed_error_details_are_ignored(value: object) -> None:
    error = build_api_error(build_error("INVALID_PIN", attempts_remaining=value, party=3))
    assert isinstance(error, exceptions.InvalidPinError)
    assert error.attempts_remaining in (None, True)
    assert error.party is None


def test_exceptions_can_be_pickled() -> None:
    error = pickle.loads(
        pickle.dumps(build_api_error(build_error("INSUFFICIENT_FUNDS", 402, available=1)))
    )
    assert isinstance(error, exceptions.InsufficientFundsError)
    assert error.available == 1
    unexpected = pickle.loads(pickle.dumps(exceptions.UnexpectedResponseError("r-1", 302)))
    assert (unexpected.request_id, unexpected.status) == ("r-1", 302)


def test_all_exceptions_derive_from_tapgate_error() -> None:
    for name in exceptions.__all__:
        error_class = getattr(exceptions, name)
        if isinstance(error_class, type) and issubclass(error_class, Exception):
            assert issubclass(error_class, exceptions.TapgateError)
