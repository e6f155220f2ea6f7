"""Retry rule properties, for any sequence of responses and errors."""

import httpx2
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tapgate_client import ApiError, OutcomeUnknownError, RetryPolicy, ServiceSecret, TapgateError
from tapgate_client.clock import system_clock
from tapgate_client.operation import Effect, Operation, build_operation
from tapgate_client.request_flow import RequestFlow, Sleep, StepResult
from tapgate_client.schemas.common import SuccessResponse

MAX_ATTEMPTS = 4


def build_error_response(status: int, code: str) -> httpx2.Response:
    return httpx2.Response(status, json={"error": "Request failed", "code": code})


CONNECT_ERRORS = [httpx2.ConnectError("refused"), httpx2.ConnectTimeout("timed out")]
LOST_RESPONSE_ERRORS = [
    httpx2.ReadError("connection reset"),
    httpx2.ReadTimeout("timed out"),
    httpx2.RemoteProtocolError("connection closed"),
    httpx2.WriteError("connection reset"),
    build_error_response(500, "INTERNAL_ERROR"),
    httpx2.Response(502, text="<html>"),
    httpx2.Response(504),
    httpx2.Response(503),  # without an error body, so not from the gateway itself
    httpx2.Response(200, text="<html>"),
]
RETRYABLE_RESPONSES = [
    build_error_response(503, "SERVICE_UNAVAILABLE"),
    build_error_response(429, "RATE_LIMITED"),
]
AUTH_ERRORS = [build_error_response(401, "UNAUTHORIZED"), build_error_response(403, "FORBIDDEN")]
FINAL_RESPONSES = [
    httpx2.Response(200, json={"success": True, "message": "Done"}),
    build_error_response(402, "INSUFFICIENT_FUNDS"),
    build_error_response(409, "DUPLICATE_REQUEST"),
    build_error_response(404, "SUBSCRIBER_NOT_FOUND"),
]

outcomes = st.lists(
    st.sampled_from(
        [
            *CONNECT_ERRORS,
            *LOST_RESPONSE_ERRORS,
            *RETRYABLE_RESPONSES,
            *AUTH_ERRORS,
            *FINAL_RESPONSES,
        ]
    ),
    min_size=MAX_ATTEMPTS,
    max_size=MAX_ATTEMPTS,
)
effects: st.SearchStrategy[Effect] = st.sampled_from(["reads", "sets", "moves", "acts"])


def build_test_operation(effect: Effect) -> Operation[SuccessResponse]:
    return build_operation(effect, "POST /api/v1/things", SuccessResponse, body={"amount": "1"})


def run_operation(
    effect: Effect, outcomes: list[StepResult]
) -> tuple[SuccessResponse | TapgateError, list[StepResult], list[httpx2.Request]]:
    """Run an operation; return its result or error, the outcomes received and the requests sent."""
    flow = RequestFlow(
        "http://gateway",
        ServiceSecret("messenger", "secret"),
        retries=RetryPolicy(max_attempts=MAX_ATTEMPTS, initial_delay=0),
        timeout=1,
        clock=system_clock,
    )
    steps = flow.run(build_test_operation(effect))
    received: list[StepResult] = []
    sent: list[httpx2.Request] = []
    step_result: StepResult = None
    try:
        while True:
            step = steps.send(step_result)
            step_result = None
            if isinstance(step, httpx2.Request):
                sent.append(step)
                step_result = outcomes[len(received)]
                received.append(step_result)
            else:
                assert isinstance(step, Sleep)
    except StopIteration as stop:
        response: SuccessResponse = stop.value
        return response, received, sent
    except TapgateError as error:
        return error, received, sent


@given(effects, outcomes)
def test_non_idempotent_operation_is_not_retried_after_a_lost_response(
    effect: Effect, outcomes: list[StepResult]
) -> None:
    _, received, _ = run_operation(effect, outcomes)
    if effect == "acts":
        assert not any(outcome in LOST_RESPONSE_ERRORS for outcome in received[:-1])


@given(effects, outcomes)
def test_write_outcome_is_unknown_when_a_response_was_lost_and_no_final_one_followed(
    effect: Effect, outcomes: list[StepResult]
) -> None:
    returned, received, _ = run_operation(effect, outcomes)
    lost = any(outcome in LOST_RESPONSE_ERRORS for outcome in received)
    if effect == "reads" or not lost:
        assert not isinstance(returned, OutcomeUnknownError)
    else:
        assert isinstance(returned, OutcomeUnknownError) == (received[-1] not in FINAL_RESPONSES)


@given(effects, outcomes)
def test_final_response_is_not_retried(effect: Effect, outcomes: list[StepResult]) -> None:
    returned, received, _ = run_operation(effect, outcomes)
    found = any(outcome in FINAL_RESPONSES or outcome in AUTH_ERRORS for outcome in received[:-1])
    assert not found
    if received[-1] is FINAL_RESPONSES[0]:
        assert isinstance(returned, SuccessResponse)
    elif received[-1] in FINAL_RESPONSES:
        assert isinstance(returned, ApiError)


@given(effects, outcomes)
def test_every_attempt_sends_the_same_body_and_request_id(
    effect: Effect, outcomes: list[StepResult]
) -> None:
    _, _, sent = run_operation(effect, outcomes)
    assert 1 <= len(sent) <= MAX_ATTEMPTS
    assert {request.content for request in sent} == {msgspec.json.encode({"amount": "1"})}
    assert len({request.headers["X-Request-ID"] for request in sent}) == 1
