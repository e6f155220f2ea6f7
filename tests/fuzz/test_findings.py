"""What is wrong with an answer is found; what is right is not."""

import json
from typing import Any

import httpx2
import pytest

from fuzz.callers import NOBODY, Callers
from fuzz.description import Operation, operations
from fuzz.findings import Finding, as_curl, problems
from tapgate.edge.openapi import render_openapi_document
from tapgate.errors import ApiError, Code
from tapgate.gateway import ENDPOINT_GROUPS

PATH = "/api/v1/wallet/quote"
TYPES = {"content-type": "application/json", "x-request-id": "1"}
RIGHT = {"type": "transfer_p2p", "amount": "5"}


@pytest.fixture(scope="module")
def operation() -> Operation:
    document = json.loads(
        render_openapi_document([one for noun in ENDPOINT_GROUPS for one in noun], "SLE")
    )
    (found,) = [one for one in operations("gateway", document) if one.path == PATH]
    return found


def found(
    operation: Operation, status: int, answer: Any, sent: Any = RIGHT, **headers: str
) -> list[str]:
    case = operation.source.Case(body=sent, media_type="application/json")
    request = httpx2.Request("POST", f"http://gateway{PATH}", json=sent)
    content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    response = httpx2.Response(status, headers=TYPES | headers, content=content)
    return list(problems(operation, case, request, response, ["the very secret"]))


def refusal(code: Code, **fields: Any) -> dict[str, Any]:
    return ApiError(code).body() | fields


def test_a_documented_refusal_is_right(operation: Operation) -> None:
    assert found(operation, 404, refusal(Code.SUBSCRIBER_NOT_FOUND)) == []


@pytest.mark.parametrize(
    ("status", "answer", "problem"),
    [
        (500, refusal(Code.INTERNAL_ERROR), "Server error"),
        (418, refusal(Code.NOT_FOUND), "Undocumented status code"),
        (404, refusal(Code.CARD_NOT_FOUND), "CARD_NOT_FOUND is not documented"),
        (404, refusal(Code.SUBSCRIBER_NOT_FOUND, error="Gone"), "another status or sentence"),
        (404, {"error": "x", "code": "NONSENSE"}, "an unknown code"),
        (404, refusal(Code.SUBSCRIBER_NOT_FOUND, stack=["x"]), "not the form of a refusal"),
        (404, refusal(Code.SUBSCRIBER_NOT_FOUND, message="Traceback (most"), "a trace"),
        (404, refusal(Code.SUBSCRIBER_NOT_FOUND, message="the very secret"), "a secret"),
        (404, {"error": 5, "code": "SUBSCRIBER_NOT_FOUND"}, "Response violates schema"),
        (200, {}, "Response violates schema"),
    ],
)
def test_a_wrong_answer_is_found(
    operation: Operation, status: int, answer: Any, problem: str
) -> None:
    assert any(problem in one for one in found(operation, status, answer))


def test_a_field_that_the_description_lacks_is_found(operation: Operation) -> None:
    answer = refusal(Code.SUBSCRIBER_NOT_FOUND, status="new")
    assert any("Response violates schema" in one for one in found(operation, 404, answer))


def test_another_content_type_and_a_malformed_header_are_found(operation: Operation) -> None:
    right = refusal(Code.SUBSCRIBER_NOT_FOUND)
    changed = found(operation, 404, right, **{"content-type": "text/html"})
    assert any("Content-Type" in one for one in changed)
    assert found(operation, 404, right, **{"x-ratelimit-limit": "many"})


def test_what_is_taken_is_held_against_the_description(operation: Operation) -> None:
    wrong = {"type": "transfer_p2p", "amount": 5}
    assert any("forbids" in one for one in found(operation, 200, {}, wrong))
    malformed = json.dumps(refusal(Code.INVALID_REQUEST), separators=(",", ":")).encode()
    assert any("called malformed" in one for one in found(operation, 400, malformed))
    assert found(operation, 400, malformed, wrong) == []


def test_a_finding_can_be_made_again() -> None:
    request = httpx2.Request("POST", "http://gateway/x?y=1", content=b"it's")
    line = as_curl(request)
    assert line.startswith("curl -X POST ") and r"--data-binary $'it\'s'" in line
    assert "http://gateway/x?y=1" in str(Finding("POST /x", "nobody", "bad", line, "200"))


def test_who_is_let_in_follows_from_the_description() -> None:
    callers = Callers([NOBODY])
    assert callers.let_in({"security": []}, "/health") == [NOBODY]
