import asyncio
import io
import json
from itertools import product
from typing import Any

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.messenger import (
    CORRECT_PIN,
    NEW_PIN,
    PUBLIC_PEM,
    WRONG_PIN,
    FlowDriver,
    build_success,
    dump_tables,
)
from cases import each
from drivers.messenger import FlowClient
from harness import split_words
from tapgate.messenger.flows import data_endpoint, screens
from tapgate.messenger.model import FormSubmitted
from tapgate.runtime import logs
from tapgate.runtime.store.database import Database
from tapgate_client.errors import unavailable

FORM_EXPIRED = (427, {"error_msg": screens.get_error_text("en", "expired")})


async def test_ping_reports_active(flow_driver: FlowDriver) -> None:
    request = {"version": "3.0", "action": "ping"}
    assert await flow_driver.send_request(request) == (200, {"data": {"status": "active"}})


async def test_request_without_a_configured_key_returns_421(flow_driver: FlowDriver) -> None:
    body = FlowClient(PUBLIC_PEM).encrypt({"action": "ping"})
    flow_driver.flow_key = None
    assert await data_endpoint.handle(flow_driver, body, flow_driver.handle_entry) == (421, "")


@pytest.mark.parametrize("body", [b"", b"{}", b"\x00\xff", b'{"action": "ping"}'])
async def test_body_that_cannot_be_decrypted_returns_421(
    flow_driver: FlowDriver, body: bytes
) -> None:
    assert await data_endpoint.handle(flow_driver, body, flow_driver.handle_entry) == (421, "")


@pytest.mark.parametrize("action", ["INIT", "BACK"])
async def test_form_screen_is_rendered_in_the_forms_language(
    flow_driver: FlowDriver, action: str
) -> None:
    token = await flow_driver.issue_form(language="fr")
    status, response = await flow_driver.send_request(
        {"action": action, "flow_token": token, "data": None}
    )
    assert status == 200
    assert response == {
        "screen": "PIN",
        "data": {
            "heading": "Saisissez votre code PIN",
            "text": "10.00 SLE to Aminata K.",
            "hint": "4 chiffres",
            "button": "Confirmer",
            "pin_label": "Votre code PIN",
        },
    }


@pytest.mark.parametrize(
    ("form", "data", "entered"),
    [
        ("pin", {"pin": CORRECT_PIN}, FormSubmitted(operation="op", pin=CORRECT_PIN)),
        (
            "new_pin",
            {"new_pin": NEW_PIN, "repeated_pin": NEW_PIN},
            FormSubmitted(operation="op", new_pin=NEW_PIN),
        ),
        (
            "change_pin",
            {"pin": CORRECT_PIN, "new_pin": NEW_PIN, "repeated_pin": NEW_PIN},
            FormSubmitted(operation="op", pin=CORRECT_PIN, new_pin=NEW_PIN),
        ),
    ],
)
async def test_submission_is_passed_to_the_handler(
    flow_driver: FlowDriver, form: str, data: dict[str, str], entered: FormSubmitted
) -> None:
    token = await flow_driver.issue_form(form)
    assert await flow_driver.submit_form(token, **data) == build_success(token)
    assert flow_driver.entries == [entered]


async def test_invalid_submission_shows_an_error_and_is_not_passed_to_the_handler(
    flow_driver: FlowDriver,
) -> None:
    token = await flow_driver.issue_form("new_pin", "fr")
    status, response = await flow_driver.submit_form(token, new_pin="1234", repeated_pin="1235")
    assert (status, response["screen"]) == (200, "NEW_PIN")
    assert response["data"]["error_message"] == screens.get_error_text("fr", "mismatch")
    assert flow_driver.entries == []


async def test_form_can_be_submitted_again_after_a_wrong_pin(flow_driver: FlowDriver) -> None:
    token = await flow_driver.issue_form()
    status, response = await flow_driver.submit_form(token, pin=WRONG_PIN)
    assert (status, response["screen"]) == (200, "PIN")
    assert response["data"]["error_message"] == "Wrong PIN, 2 tries left."
    assert await flow_driver.submit_form(token, pin=CORRECT_PIN) == build_success(token)


async def test_rejection_without_a_text_gets_a_default_message(flow_driver: FlowDriver) -> None:
    flow_driver.wrong_pin_text = ""
    _, response = await flow_driver.submit_form(await flow_driver.issue_form(), pin=WRONG_PIN)
    assert response["data"]["error_message"] == screens.get_error_text("en", "try_again")


@pytest.mark.parametrize("failure", [unavailable("database"), RuntimeError(CORRECT_PIN)])
async def test_failed_submission_shows_an_error_and_keeps_the_form_usable(
    flow_driver: FlowDriver, failure: Exception
) -> None:
    token, flow_driver.failure = await flow_driver.issue_form(), failure
    status, response = await flow_driver.submit_form(token, pin=CORRECT_PIN)
    assert (status, response["screen"]) == (200, "PIN")
    assert response["data"]["error_message"] == screens.get_error_text("en", "try_again")
    flow_driver.failure = None
    assert await flow_driver.submit_form(token, pin=CORRECT_PIN) == build_success(token)


async def test_unavailable_database_returns_503(flow_driver: FlowDriver) -> None:
    unreachable = await Database.connect("postgresql://nobody@127.0.0.1:1/nothing")
    try:
        status, response = await FlowDriver(unreachable).submit_form("token", pin=CORRECT_PIN)
    finally:
        await unreachable.close()
    assert (status, response) == (503, {"error_msg": screens.get_error_text("en", "try_again")})


@each(
    "action, token",
    product(["INIT", "BACK", "data_exchange"], ["", "unknown", "\x00", None, 7, ["token"]]),
)
async def test_invalid_token_returns_427(
    flow_driver: FlowDriver, action: str, token: object
) -> None:
    found = await flow_driver.send_request({"action": action, "flow_token": token, "data": {}})
    assert found == FORM_EXPIRED


async def test_expired_form_is_reported_in_its_language(flow_driver: FlowDriver) -> None:
    token = await flow_driver.issue_form(language="fr")
    flow_driver.advance_clock(minutes=5)
    expired = 427, {"error_msg": screens.get_error_text("fr", "expired")}
    assert await flow_driver.submit_form(token, pin=CORRECT_PIN) == expired
    assert await flow_driver.send_request({"action": "INIT", "flow_token": token}) == expired
    assert flow_driver.entries == []


async def test_replayed_request_has_no_effect(flow_driver: FlowDriver) -> None:
    token, client = await flow_driver.issue_form(), FlowClient(PUBLIC_PEM)
    body = client.encrypt(
        {"action": "data_exchange", "flow_token": token, "data": {"pin": CORRECT_PIN}}
    )
    responses = [
        await data_endpoint.handle(flow_driver, body, flow_driver.handle_entry) for _ in range(3)
    ]
    assert [status for status, _ in responses] == [200, 427, 427]
    assert flow_driver.used_count == 1


async def test_concurrent_submissions_use_the_form_once(flow_driver: FlowDriver) -> None:
    token = await flow_driver.issue_form()
    responses = await asyncio.gather(
        *(flow_driver.submit_form(token, pin=CORRECT_PIN) for _ in range(6))
    )
    assert sorted(status for status, _ in responses) == [200, *[427] * 5]
    assert flow_driver.used_count == 1


async def test_form_used_between_lookup_and_submission_returns_427(flow_driver: FlowDriver) -> None:
    token = await flow_driver.issue_form(language="fr")
    both_found = asyncio.Barrier(2)

    async def handle_submission(_: FlowDriver, form: Any, submission: FormSubmitted) -> Any:
        await both_found.wait()
        return await flow_driver.handle_entry(flow_driver, form, submission)

    async def submit() -> tuple[int, dict[str, Any]]:
        client = FlowClient(PUBLIC_PEM)
        request = {"action": "data_exchange", "flow_token": token, "data": {"pin": CORRECT_PIN}}
        status, text = await data_endpoint.handle(
            flow_driver, client.encrypt(request), handle_submission
        )
        return status, client.decrypt(text)

    responses = sorted(await asyncio.gather(submit(), submit()), key=lambda response: response[0])
    expired = 427, {"error_msg": screens.get_error_text("fr", "expired")}
    assert responses == [build_success(token), expired]


@pytest.mark.parametrize("action", ["INIT", "data_exchange"])
async def test_client_error_is_acknowledged(flow_driver: FlowDriver, action: str) -> None:
    token = await flow_driver.issue_form()
    data = {"error": "INVALID_SCREEN_TRANSITION", "error_message": "..."}
    request = {"action": action, "flow_token": token, "data": data}
    assert await flow_driver.send_request(request) == (200, {"data": {"acknowledged": True}})


@each("action", ["PING", "complete", None, 1, [], {}])
async def test_unknown_action_returns_400(flow_driver: FlowDriver, action: object) -> None:
    status, response = await flow_driver.send_request(
        {"action": action, "flow_token": await flow_driver.issue_form()}
    )
    assert (status, list(response)) == (400, ["error_msg"])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
requests = st.fixed_dictionaries(
    {},
    optional={
        "action": st.sampled_from(["ping", "INIT", "BACK", "data_exchange"]) | json_values,
        "flow_token": json_values,
        "screen": json_values,
        "data": json_values,
    },
)


@settings(max_examples=60)
@given(requests, st.booleans())
async def test_arbitrary_request_gets_a_response(
    flow_driver: FlowDriver, request: dict[str, Any], has_valid_token: bool
) -> None:
    if has_valid_token:
        request |= {"flow_token": await flow_driver.issue_form()}
    status, response = await flow_driver.send_request(request)
    assert status in {200, 400, 427}
    assert isinstance(response, dict)


async def test_pin_appears_in_no_log_table_or_response(flow_driver: FlowDriver) -> None:
    lines, responses = io.BytesIO(), []
    log_config = structlog.get_config()
    logs.configure(lines)
    try:
        for form in screens.SCREENS:
            for failure in (None, RuntimeError(CORRECT_PIN), unavailable(CORRECT_PIN)):
                flow_driver.failure = failure
                token = await flow_driver.issue_form(form)
                for pin in (WRONG_PIN, CORRECT_PIN):
                    pins = {"pin": pin, "new_pin": NEW_PIN, "repeated_pin": NEW_PIN}
                    responses.append(await flow_driver.submit_form(token, **pins))
                    responses.append(
                        await flow_driver.submit_form(token, **pins, error=pin, error_message=pin)
                    )
        await flow_driver.send_request({"action": CORRECT_PIN, "data": {"pin": CORRECT_PIN}})
    finally:
        structlog.configure(**log_config)
    log = lines.getvalue().decode()
    assert "flows.submission_failed" in log
    assert "flows.client_error" in log
    tables = json.dumps(await dump_tables(flow_driver.database))
    assert "10.00 SLE to Aminata K." in tables
    for pin in (CORRECT_PIN, WRONG_PIN, NEW_PIN):
        assert not any(word == pin for word in split_words(log)), "logged"
        assert not any(word == pin for word in split_words(json.dumps(responses))), "returned"
        assert not any(word == pin for word in split_words(tables)), "stored"
