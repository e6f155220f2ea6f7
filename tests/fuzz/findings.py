"""Rules that every response must satisfy. A violation is a finding."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import httpx2
import requests
import schemathesis
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fuzz.openapi import AnyCase, Operation
from tapgate_client.errors import TABLE, Code

_CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
_INTERNAL_MARKERS = ("Traceback", 'File "', "asyncpg", "msgspec", "site-packages")
#: A key's owner is checked before its permissions, so any authenticated operation can return
#: these.
_CREDENTIAL_CODES = (Code.PROCESSOR_SUSPENDED, Code.PARTNER_SUSPENDED, Code.TERMINAL_BLOCKED)
#: Rules that a schema cannot express: which of several fields is required, that the header matches,
#: and the type of a threshold. JSON Schema accepts 3.0 as an integer; the API does not.
_RULES_BEYOND_SCHEMA = (
    "is required",
    "must equal the Idempotency-Key header",
    "must be a whole number",
    "threshold must be a string",
    "is too easy to guess",  # a PIN, rejected with 400 when it is changed
)
#: The provider may send anything; unknown content is accepted and ignored. The same applies to
#: simulated deliveries.
_UNVALIDATED_OPERATIONS = ("POST /api/v1/webhooks/messaging", "POST /api/v1/simulator/deliveries")
_GATEWAY_ERROR_FIELDS = {"error", "code", "message", "details"}
_MESSENGER_ERROR_FIELDS = {"error", "status", "retryAfter", "answer"}


@dataclass(frozen=True)
class Finding:
    operation: str
    caller: str
    problem: str
    #: The request as a curl command, for reproduction.
    request: str
    response: str

    def __str__(self) -> str:
        first = f"{self.operation} by {self.caller}: {self.problem}"
        return f"{first}\n  {self.request}\n  {self.response}"


def format_curl(request: httpx2.Request) -> str:
    headers = " ".join(
        f"-H {_quote(f'{name}: {value}')}"
        for name, value in request.headers.multi_items()
        if name not in ("host", "content-length")
    )
    body = f" --data-binary {_quote(request.content.decode('latin-1'))}" if request.content else ""
    return f"curl -X {request.method} {headers}{body} {_quote(str(request.url))}"


def _quote(text: str) -> str:
    if text.isascii() and text.isprintable() and "'" not in text:
        return f"'{text}'"
    escaped = text.encode("unicode_escape").decode().replace("'", "\\'")
    return f"$'{escaped}'"


def find_problems(
    operation: Operation,
    case: AnyCase,
    request: httpx2.Request,
    response: httpx2.Response,
    secrets: Iterable[str],
) -> Iterator[str]:
    yield from _check_against_openapi(case, request, response)
    text = response.text
    if response.status_code >= 400:
        yield from _check_error(operation, response)
        yield from (
            f"stack trace in the response: {word}" for word in _INTERNAL_MARKERS if word in text
        )
    yield from ("secret in the response" for secret in secrets if secret in text)
    yield from _check_accepted_body(operation, request, response)


def list_sent(request: httpx2.Request, texts: Iterable[str]) -> set[str]:
    """Return the texts that a request contains."""
    sent = unquote(str(request.url)) + request.content.decode("latin-1")
    return {text for text in texts if text in sent}


def _check_against_openapi(
    case: AnyCase, request: httpx2.Request, received: httpx2.Response
) -> Iterator[str]:
    headers = {name: [value] for name, value in received.headers.items()}
    response = Response(
        received.status_code,
        headers,
        received.content,
        to_prepared_request(request),
        0.0,
        verify=False,
    )
    try:
        case.validate_response(response, checks=_CHECKS)
    except FailureGroup as group:
        for failure in group.exceptions:
            assert isinstance(failure, Failure)
            yield f"{failure.title}: {failure.message}"


def _check_error(operation: Operation, response: httpx2.Response) -> Iterator[str]:
    if response.headers.get("content-type") != "application/json":
        return
    body = json.loads(response.content)
    if operation.service == "messenger":
        if body.keys() - _MESSENGER_ERROR_FIELDS or body.get("status") != "error":
            yield "wrong error format"
        return
    if operation.path == "/health":
        return
    if body.keys() - _GATEWAY_ERROR_FIELDS:
        yield "wrong error format"
    yield from find_undocumented_codes(operation, response.status_code, body)


def find_undocumented_codes(
    operation: Operation, status: int, body: dict[str, object]
) -> Iterator[str]:
    code = body.get("code")
    if code not in list(Code):
        yield f"unknown code: {code}"
        return
    expected, message = TABLE[Code(str(code))][:2]
    if (expected, message) != (status, body.get("error")):
        yield f"{code} with another status or message than in docs/errors.md"
    is_credential_error = code in _CREDENTIAL_CODES and operation.spec["security"]
    if code not in operation.list_codes(status) and not is_credential_error:
        yield f"{code} is not documented for this operation"


def _check_accepted_body(
    operation: Operation, request: httpx2.Request, response: httpx2.Response
) -> Iterator[str]:
    """Yield a problem if an invalid body was accepted or a valid one rejected as malformed."""
    media = request.headers.get("content-type", "")
    if operation.body_validator is None or media != "application/json":
        return
    try:
        is_valid = operation.body_validator.is_valid(json.loads(request.content))
    except ValueError:
        is_valid = False
    if not is_valid and response.is_success and operation.name not in _UNVALIDATED_OPERATIONS:
        yield "accepted a body that the schema forbids"
    malformed = response.status_code == 400 and '"code":"INVALID_REQUEST"' in response.text
    if is_valid and malformed and not any(rule in response.text for rule in _RULES_BEYOND_SCHEMA):
        yield f"rejected as malformed a body that the schema allows: {response.text}"


def to_prepared_request(request: httpx2.Request) -> requests.PreparedRequest:
    """Convert the request to the type that schemathesis expects."""
    return requests.Request(
        request.method, str(request.url), dict(request.headers), data=request.content
    ).prepare()
