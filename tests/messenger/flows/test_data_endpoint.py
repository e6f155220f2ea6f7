import asyncio
import io
import json
from typing import Any

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from messenger.flows.builders import (
    CORRECT_PIN,
    NEW_PIN,
    PUBLIC_PEM,
    WRONG_PIN,
    FlowDriver,
    build_success,
    dump_tables,
    split_words,
)
from tapgate.errors import unavailable
from tapgate.messenger.flows import data_endpoint, screens
from tapgate.messenger.flows.flow_client import FlowClient
from tapgate.messenger.model.events import FormSubmitted
from tapgate.service import logs
from tapgate.store.database import Database

FORM_EXPIRED = (427, {"error_msg": screens.get_error_text("en", "expired")})


async def test_ping_reports_active(stage: FlowDriver) -> None:
    request = {"version": "3.0", "action": "ping"}
    assert await stage.send_request(request) == (200, {"data": {"status": "active"}})


async def test_request_without_a_configured_key_returns_421(stage: FlowDriver) -> None:
    body = FlowClient(PUBLIC_PEM).encrypt({"action": "ping"})
    stage.flow_key = None
    assert await data_endpoint.handle(stage, body, stage.handle_entry) == (421, "")


@pytest.mark.parametrize("body", [b"", b"{}", b"\x00\xff", b'{"action": "ping"}'])
async def test_body_that_cannot_be_decrypted_returns_421(stage: FlowDriver, body: bytes) -> None:
    assert await data_endpoint.handle(stage, body, stage.handle_entry) == (421, "")


@pytest.mark.parametrize("action", ["INIT", "BACK"])
async def test_form_screen_is_rendered_in_the_forms_language(
    stage: FlowDriver, action: str
) -> None:
    token = await stage.issue_form(language="fr")
    status, answer = await stage.send_request({"action": action, "flow_token": token, "data": None})
    assert status == 200
    assert answer == {
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
    stage: FlowDriver, form: str, data: dict[str, str], entered: FormSubmitted
) -> None:
    token = await stage.issue_form(form)
    assert await stage.submit_form(token, **data) == build_success(token)
    assert stage.entries == [entered]


async def test_invalid_submission_is_shown_on_the_screen_and_not_handled(stage: FlowDriver) -> None:
    token = await stage.issue_form("new_pin", "fr")
    status, answer = await stage.submit_form(token, new_pin="1234", repeated_pin="1235")
    assert (status, answer["screen"]) == (200, "NEW_PIN")
    assert answer["data"]["error_message"] == screens.get_error_text("fr", "mismatch")
    assert stage.entries == []


async def test_form_can_be_submitted_again_after_a_wrong_pin(stage: FlowDriver) -> None:
    token = await stage.issue_form()
    status, answer = await stage.submit_form(token, pin=WRONG_PIN)
    assert (status, answer["screen"]) == (200, "PIN")
    assert answer["data"]["error_message"] == "Wrong PIN, 2 tries left."
    assert await stage.submit_form(token, pin=CORRECT_PIN) == build_success(token)


async def test_rejection_without_a_text_gets_a_default_message(stage: FlowDriver) -> None:
    stage.wrong_pin_text = ""
    _, answer = await stage.submit_form(await stage.issue_form(), pin=WRONG_PIN)
    assert answer["data"]["error_message"] == screens.get_error_text("en", "try_again")


@pytest.mark.parametrize("failure", [unavailable("away"), RuntimeError(CORRECT_PIN)])
async def test_failed_submission_shows_an_error_and_keeps_the_form(
    stage: FlowDriver, failure: Exception
) -> None:
    token, stage.failure = await stage.issue_form(), failure
    status, answer = await stage.submit_form(token, pin=CORRECT_PIN)
    assert (status, answer["screen"]) == (200, "PIN")
    assert answer["data"]["error_message"] == screens.get_error_text("en", "try_again")
    stage.failure = None
    assert await stage.submit_form(token, pin=CORRECT_PIN) == build_success(token)


async def test_unavailable_database_returns_503(stage: FlowDriver) -> None:
    away = await Database.connect("postgresql://nobody@127.0.0.1:1/nothing")
    try:
        status, answer = await FlowDriver(away).submit_form("token", pin=CORRECT_PIN)
    finally:
        await away.close()
    assert (status, answer) == (503, {"error_msg": screens.get_error_text("en", "try_again")})


@pytest.mark.parametrize("action", ["INIT", "BACK", "data_exchange"])
@pytest.mark.parametrize("token", ["", "unknown", "\x00", None, 7, ["token"]])
async def test_invalid_token_returns_427(stage: FlowDriver, action: str, token: object) -> None:
    assert (
        await stage.send_request({"action": action, "flow_token": token, "data": {}})
        == FORM_EXPIRED
    )


async def test_expired_form_is_reported_in_its_language(stage: FlowDriver) -> None:
    token = await stage.issue_form(language="fr")
    stage.advance_clock(minutes=5)
    ended = 427, {"error_msg": screens.get_error_text("fr", "expired")}
    assert await stage.submit_form(token, pin=CORRECT_PIN) == ended
    assert await stage.send_request({"action": "INIT", "flow_token": token}) == ended
    assert stage.entries == []


async def test_replayed_request_has_no_effect(stage: FlowDriver) -> None:
    token, client = await stage.issue_form(), FlowClient(PUBLIC_PEM)
    body = client.encrypt(
        {"action": "data_exchange", "flow_token": token, "data": {"pin": CORRECT_PIN}}
    )
    answers = [await data_endpoint.handle(stage, body, stage.handle_entry) for _ in range(3)]
    assert [status for status, _ in answers] == [200, 427, 427]
    assert stage.used_count == 1


async def test_concurrent_submissions_use_the_form_once(stage: FlowDriver) -> None:
    token = await stage.issue_form()
    answers = await asyncio.gather(*(stage.submit_form(token, pin=CORRECT_PIN) for _ in range(6)))
    assert sorted(status for status, _ in answers) == [200, *[427] * 5]
    assert stage.used_count == 1


async def test_form_used_between_lookup_and_submission_returns_427(stage: FlowDriver) -> None:
    token = await stage.issue_form(language="fr")
    both_found = asyncio.Barrier(2)

    async def enter(_: FlowDriver, form: Any, entered: FormSubmitted) -> Any:
        await both_found.wait()
        return await stage.handle_entry(stage, form, entered)

    async def submit() -> tuple[int, dict[str, Any]]:
        client = FlowClient(PUBLIC_PEM)
        request = {"action": "data_exchange", "flow_token": token, "data": {"pin": CORRECT_PIN}}
        status, text = await data_endpoint.handle(stage, client.encrypt(request), enter)
        return status, client.decrypt(text)

    answers = sorted(await asyncio.gather(submit(), submit()), key=lambda answer: answer[0])
    ended = 427, {"error_msg": screens.get_error_text("fr", "expired")}
    assert answers == [build_success(token), ended]


@pytest.mark.parametrize("action", ["INIT", "data_exchange"])
async def test_client_error_is_acknowledged(stage: FlowDriver, action: str) -> None:
    token = await stage.issue_form()
    data = {"error": "INVALID_SCREEN_TRANSITION", "error_message": "..."}
    request = {"action": action, "flow_token": token, "data": data}
    assert await stage.send_request(request) == (200, {"data": {"acknowledged": True}})


@pytest.mark.parametrize("action", ["PING", "complete", None, 1, [], {}])
async def test_unknown_action_returns_400(stage: FlowDriver, action: object) -> None:
    status, answer = await stage.send_request(
        {"action": action, "flow_token": await stage.issue_form()}
    )
    assert (status, list(answer)) == (400, ["error_msg"])


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
    stage: FlowDriver, request: dict[str, Any], known: bool
) -> None:
    if known:
        request |= {"flow_token": await stage.issue_form()}
    status, answer = await stage.send_request(request)
    assert status in {200, 400, 427}
    assert isinstance(answer, dict)


async def test_pin_appears_in_no_log_table_or_response(stage: FlowDriver) -> None:
    lines, answers = io.BytesIO(), []
    before = structlog.get_config()
    logs.configure(lines)
    try:
        for form in screens.SCREENS:
            for failure in (None, RuntimeError(CORRECT_PIN), unavailable(CORRECT_PIN)):
                stage.failure = failure
                token = await stage.issue_form(form)
                for pin in (WRONG_PIN, CORRECT_PIN):
                    pins = {"pin": pin, "new_pin": NEW_PIN, "repeated_pin": NEW_PIN}
                    answers.append(await stage.submit_form(token, **pins))
                    answers.append(
                        await stage.submit_form(token, **pins, error=pin, error_message=pin)
                    )
        await stage.send_request({"action": CORRECT_PIN, "data": {"pin": CORRECT_PIN}})
    finally:
        structlog.configure(**before)
    seen = lines.getvalue().decode()
    assert "flows.submission_failed" in seen
    assert "flows.client_error" in seen
    tables = json.dumps(await dump_tables(stage.database))
    assert "10.00 SLE to Aminata K." in tables
    for pin in (CORRECT_PIN, WRONG_PIN, NEW_PIN):
        assert not any(word == pin for word in split_words(seen)), "logged"
        assert not any(word == pin for word in split_words(json.dumps(answers))), "answered"
        assert not any(word == pin for word in split_words(tables)), "stored"
