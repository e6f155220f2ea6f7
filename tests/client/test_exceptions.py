"""Exceptions: the class depends on the kind of error, and `code` tells the exact one."""

import inspect
import pickle
import re
from pathlib import Path

from cases import each
from tapgate.client import exceptions
from tapgate.client.exceptions import ApiError, DeclinedError, TapgateError, build_api_error
from tapgate.errors import TABLE, Code
from tapgate.schemas.common import ErrorBody

DOCUMENT = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
#: Codes recorded as a failed transaction, according to the documentation of each code.
DECLINES = set(re.findall(r"### (\w+)\n\n\*\*\d+\*\* · `request_id`: consumed", DOCUMENT))

CLASS_BY_STATUS = {
    400: exceptions.ValidationError,
    401: exceptions.AuthenticationError,
    402: exceptions.DeclinedError,
    403: exceptions.PermissionDeniedError,
    404: exceptions.NotFoundError,
    405: exceptions.ValidationError,
    409: exceptions.ConflictError,
    413: exceptions.ValidationError,
    418: exceptions.ValidationError,
    422: exceptions.ValidationError,
    429: exceptions.RateLimitedError,
    500: exceptions.ServerError,
    503: exceptions.UnavailableError,
}


def build_error(code: str, status: int = 400, **details: object) -> ApiError:
    body = ErrorBody(error="Request failed", code=code, details=details)
    return build_api_error(body, status, "r-1", 2.0)


@each("code", TABLE)
def test_every_error_code_raises_the_class_for_declines_or_for_its_status(code: Code) -> None:
    status, _ = TABLE[code]
    error = build_error(code, status)
    assert type(error) is (DeclinedError if code in DECLINES else CLASS_BY_STATUS[status])
    assert (error.code, error.status, error.request_id) == (code, status, "r-1")


def test_documentation_marks_declines_as_consuming_the_request_id() -> None:
    assert {"INSUFFICIENT_FUNDS", "DAILY_LIMIT_EXCEEDED", "CARD_NOT_ACTIVE"} < DECLINES


@each("status", CLASS_BY_STATUS)
def test_unknown_code_gets_the_class_of_its_status(status: int) -> None:
    error = build_error("FROM_THE_FUTURE", status)
    assert type(error) is CLASS_BY_STATUS[status]
    assert error.code == "FROM_THE_FUTURE"


def test_error_has_the_fields_of_the_response() -> None:
    body = ErrorBody(error="Invalid PIN", code="INVALID_PIN", message="Wrong", details={"a": 1})
    error = build_api_error(body, 400, "r-1", 2.0)
    assert (error.error, error.message, error.details) == ("Invalid PIN", "Wrong", {"a": 1})
    assert (error.code, error.retry_after) == (Code.INVALID_PIN, 2.0)
    assert str(error) == "INVALID_PIN (400) Invalid PIN: Wrong [r-1]"
    assert build_api_error(ErrorBody(error="x", code="X"), 400, "r-1").details == {}


@each("fields", [{"amount": "is too much"}, None, [], "4071"])
def test_validation_errors_are_available_by_field(fields: object) -> None:
    error = build_error("VALIDATION_FAILED", 422, fields=fields)
    assert isinstance(error, exceptions.ValidationError)
    assert error.fields == (fields if isinstance(fields, dict) else {})


def test_exceptions_can_be_pickled() -> None:
    declined = build_error("INSUFFICIENT_FUNDS", 402, available=1)
    for error in (
        declined,
        exceptions.OutcomeUnknownError("r-1"),
        exceptions.UnexpectedResponseError("r-1", 302),
        exceptions.SignatureError("no signature matches"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_all_exceptions_derive_from_tapgate_error_and_have_a_code() -> None:
    classes = [
        member
        for _, member in inspect.getmembers(exceptions, inspect.isclass)
        if issubclass(member, Exception)
    ]
    assert len(classes) == 15
    for error_class in classes:
        assert issubclass(error_class, TapgateError)
    assert exceptions.OutcomeUnknownError("r-1").code is None
