"""Whatever comes back, in whatever order: the rules of trying again hold."""

import httpx2
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tapgate.client import ApiError, OutcomeUnknownError, RetryPolicy, ServiceSecret, TapgateError
from tapgate.client.operation import Effect, Operation, build_operation
from tapgate.client.records.base import Confirmation
from tapgate.client.request_flow import RequestFlow, Sleep, StepResult
from tapgate.clock import system_clock

TRIES = 4


def refusal(status: int, code: str) -> httpx2.Response:
    return httpx2.Response(status, json={"error": "No", "code": code})


NOT_SENT = [httpx2.ConnectError("refused"), httpx2.ConnectTimeout("late")]
LOST = [
    httpx2.ReadError("cut"),
    httpx2.ReadTimeout("late"),
    httpx2.RemoteProtocolError("cut"),
    httpx2.WriteError("cut"),
    refusal(500, "INTERNAL_ERROR"),
    httpx2.Response(502, text="<html>"),
    httpx2.Response(504),
    httpx2.Response(503),  # not the gateway's own
    httpx2.Response(200, text="<html>"),
]
LATER = [refusal(503, "SERVICE_UNAVAILABLE"), refusal(429, "RATE_LIMITED")]
AT_THE_DOOR = [refusal(401, "UNAUTHORIZED"), refusal(403, "FORBIDDEN")]
SETTLED = [
    httpx2.Response(200, json={"success": True, "message": "Done"}),
    refusal(402, "INSUFFICIENT_FUNDS"),
    refusal(409, "DUPLICATE_REQUEST"),
    refusal(404, "SUBSCRIBER_NOT_FOUND"),
]

outcomes = st.lists(
    st.sampled_from([*NOT_SENT, *LOST, *LATER, *AT_THE_DOOR, *SETTLED]),
    min_size=TRIES,
    max_size=TRIES,
)
effects: st.SearchStrategy[Effect] = st.sampled_from(["reads", "sets", "moves", "acts"])


def operation(effect: Effect) -> Operation[Confirmation]:
    return build_operation(effect, "POST", "/api/v1/things", Confirmation, body={"amount": "1"})


def drive(
    effect: Effect, outcomes: list[StepResult]
) -> tuple[Confirmation | TapgateError, list[StepResult], list[httpx2.Request]]:
    """What the caller gets; what came back until then; what was sent."""
    exchange = RequestFlow(
        "http://gateway",
        ServiceSecret("messenger", "secret"),
        retries=RetryPolicy(max_attempts=TRIES, initial_delay=0),
        timeout=httpx2.Timeout(1),
        clock=system_clock,
    )
    steps = exchange.run(operation(effect))
    came: list[StepResult] = []
    sent: list[httpx2.Request] = []
    told: StepResult = None
    try:
        while True:
            step = steps.send(told)
            told = None
            if isinstance(step, httpx2.Request):
                sent.append(step)
                told = outcomes[len(came)]
                came.append(told)
            else:
                assert isinstance(step, Sleep)
    except StopIteration as end:
        answer: Confirmation = end.value
        return answer, came, sent
    except TapgateError as error:
        return error, came, sent


@given(effects, outcomes)
def test_what_may_have_happened_is_repeated_only_where_that_does_no_harm(
    effect: Effect, outcomes: list[StepResult]
) -> None:
    _, came, _ = drive(effect, outcomes)
    if effect == "acts":
        assert not any(outcome in LOST for outcome in came[:-1])


@given(effects, outcomes)
def test_nobody_is_told_that_nothing_happened_when_it_may_have(
    effect: Effect, outcomes: list[StepResult]
) -> None:
    given_back, came, _ = drive(effect, outcomes)
    lost = any(outcome in LOST for outcome in came)
    if effect == "reads" or not lost:
        assert not isinstance(given_back, OutcomeUnknownError)
    else:
        assert isinstance(given_back, OutcomeUnknownError) == (came[-1] not in SETTLED)


@given(effects, outcomes)
def test_an_answer_ends_it(effect: Effect, outcomes: list[StepResult]) -> None:
    given_back, came, _ = drive(effect, outcomes)
    assert not any(outcome in SETTLED or outcome in AT_THE_DOOR for outcome in came[:-1])
    if came[-1] is SETTLED[0]:
        assert isinstance(given_back, Confirmation)
    elif came[-1] in SETTLED:
        assert isinstance(given_back, ApiError)


@given(effects, outcomes)
def test_every_try_is_the_same_request(effect: Effect, outcomes: list[StepResult]) -> None:
    _, _, sent = drive(effect, outcomes)
    assert 1 <= len(sent) <= TRIES
    assert {request.content for request in sent} == {msgspec.json.encode({"amount": "1"})}
    assert len({request.headers["X-Request-ID"] for request in sent}) == 1
