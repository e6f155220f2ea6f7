"""Tests for the response checks: invalid responses are reported, valid ones are not."""

import json
from typing import Any

import httpx2
import pytest

from fuzz.callers import ANONYMOUS, Callers
from fuzz.findings import Finding, find_problems, format_curl
from fuzz.openapi import Operation, list_operations
from fuzz.results import Results
from tapgate.http.api.openapi import render_openapi_document
from tapgate.server.gateway import ENDPOINT_GROUPS
from tapgate_client.errors import ApiError, Code

PATH = "/api/v1/wallet/quote"
RESPONSE_HEADERS = {"content-type": "application/json", "x-request-id": "1"}
VALID_BODY = {"type": "transfer_p2p", "amount": "5"}


@pytest.fixture(scope="module")
def operation() -> Operation:
    document = json.loads(
        render_openapi_document(
            [endpoint for group in ENDPOINT_GROUPS for endpoint in group], "SLE"
        )
    )
    (match,) = [item for item in list_operations("gateway", document) if item.path == PATH]
    return match


def list_problems(
    operation: Operation, status: int, response_body: Any, sent: Any = VALID_BODY, **headers: str
) -> list[str]:
    case = operation.source.Case(body=sent, media_type="application/json")
    request = httpx2.Request("POST", f"http://gateway{PATH}", json=sent)
    content = (
        response_body if isinstance(response_body, bytes) else json.dumps(response_body).encode()
    )
    response = httpx2.Response(status, headers=RESPONSE_HEADERS | headers, content=content)
    return list(find_problems(operation, case, request, response, ["the very secret"]))


def build_error(code: Code, **fields: Any) -> dict[str, Any]:
    return ApiError(code).body() | fields


def test_documented_error_is_not_a_finding(operation: Operation) -> None:
    assert list_problems(operation, 404, build_error(Code.SUBSCRIBER_NOT_FOUND)) == []


@pytest.mark.parametrize(
    ("status", "response", "problem"),
    [
        (500, build_error(Code.INTERNAL_ERROR), "Server error"),
        (418, build_error(Code.NOT_FOUND), "Undocumented status code"),
        (404, build_error(Code.AGENT_NOT_FOUND), "AGENT_NOT_FOUND is not documented"),
        (404, build_error(Code.SUBSCRIBER_NOT_FOUND, error="Gone"), "another status or message"),
        (404, {"error": "x", "code": "NONSENSE"}, "unknown code"),
        (404, build_error(Code.SUBSCRIBER_NOT_FOUND, stack=["x"]), "wrong error format"),
        (404, build_error(Code.SUBSCRIBER_NOT_FOUND, message="Traceback (most"), "stack trace"),
        (404, build_error(Code.SUBSCRIBER_NOT_FOUND, message="the very secret"), "secret in"),
        (404, {"error": 5, "code": "SUBSCRIBER_NOT_FOUND"}, "Response violates schema"),
        (200, {}, "Response violates schema"),
    ],
)
def test_invalid_response_is_a_finding(
    operation: Operation, status: int, response: Any, problem: str
) -> None:
    assert any(problem in item for item in list_problems(operation, status, response))


def test_undocumented_response_field_is_a_finding(operation: Operation) -> None:
    response = build_error(Code.SUBSCRIBER_NOT_FOUND, status="new")
    problems = list_problems(operation, 404, response)
    assert any("Response violates schema" in item for item in problems)


def test_wrong_content_type_and_malformed_header_are_findings(operation: Operation) -> None:
    body = build_error(Code.SUBSCRIBER_NOT_FOUND)
    problems = list_problems(operation, 404, body, **{"content-type": "text/html"})
    assert any("Content-Type" in item for item in problems)
    assert list_problems(operation, 404, body, **{"x-ratelimit-limit": "many"})


def test_accepted_and_rejected_bodies_are_checked_against_the_schema(operation: Operation) -> None:
    wrong = {"type": "transfer_p2p", "amount": 5}
    assert any("forbids" in item for item in list_problems(operation, 200, {}, wrong))
    malformed = json.dumps(build_error(Code.INVALID_REQUEST), separators=(",", ":")).encode()
    problems = list_problems(operation, 400, malformed)
    assert any("rejected as malformed" in item for item in problems)
    assert list_problems(operation, 400, malformed, wrong) == []


def test_finding_contains_a_reproducible_curl_command() -> None:
    request = httpx2.Request("POST", "http://gateway/x?y=1", content=b"it's")
    line = format_curl(request)
    assert line.startswith("curl -X POST ") and r"--data-binary $'it\'s'" in line
    assert "http://gateway/x?y=1" in str(Finding("POST /x", "anonymous", "bad", line, "200"))


def test_operation_without_security_allows_only_the_anonymous_caller() -> None:
    callers = Callers([ANONYMOUS])
    assert callers.list_allowed({"security": []}, "/health") == [ANONYMOUS]


def test_operation_that_never_succeeds_without_a_declaration_is_a_finding() -> None:
    results = Results(["GET /a", "GET /b", "GET /c", "GET /d"])
    for name, status in (("GET /a", 200), ("GET /b", 404), ("GET /c", 404), ("GET /d", 200)):
        results.record_response(name, "anonymous", httpx2.Response(status, text="text"))
    results.report_unreached({"GET /c": "a reason", "GET /d": "a reason"})
    assert [(item.operation, item.problem) for item in results.findings] == [
        ("GET /b", "never succeeded"),
        ("GET /d", "declared as unreachable, but succeeded"),
    ]
