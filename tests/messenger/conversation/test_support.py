"""Contact with support: which texts are passed on, and what the customer is shown."""

import pytest

from builders.conversation import CODE, PHONE, PIN, ConversationDriver
from cases import each
from tapgate.messenger.gateway_requests import ContactSupport
from tapgate.messenger.model import (
    GatewayUnreachable,
    Language,
    NumberChanged,
    Person,
    RequestRejected,
)


def open_request(language: Language = "en") -> ConversationDriver:
    chat = ConversationDriver(language)
    chat("talk to a person")
    chat("My card was charged twice")
    chat.gateway.requests.clear()
    return chat


def list_texts(chat: ConversationDriver) -> list[str]:
    requests = chat.list_requests(ContactSupport)
    assert all(request.append_only for request in requests)
    return [request.text for request in requests]


def test_texts_other_than_commands_are_passed_on_and_the_customer_is_notified_once() -> None:
    chat = open_request()
    assert "passed that on" in chat("zq blorp xx")
    assert chat("zq blorp yy") == ""
    assert list_texts(chat) == ["zq blorp xx", "zq blorp yy"]
    assert chat.conversation.command is None


@each("text", ["yes", "no", "ok", "thank you", "reverse my last transfer"])
def test_answers_to_support_are_passed_on(text: str) -> None:
    chat = open_request()
    chat(text)
    assert list_texts(chat) == [text]


@each("text", ["balance", "menu", "hello", "send 5 to AM-1001", "help"])
def test_commands_still_work_while_a_request_is_open(text: str) -> None:
    chat = open_request()
    assert chat(text)
    assert list_texts(chat) == []


@each("text", [PIN, f"my pin is {PIN}", CODE, "60 48 29"])
def test_possible_secrets_are_not_passed_on(text: str) -> None:
    chat = open_request()
    chat(text)
    assert list_texts(chat) == []
    chat = ConversationDriver()
    chat("talk to a person")
    chat(text)
    assert chat.list_requests(ContactSupport) == []
    assert chat.conversation.command == "person"


def test_answer_to_an_open_question_is_not_passed_on() -> None:
    chat = open_request()
    chat("send 5 to AM-1001")
    chat("zq blorp xx")
    assert list_texts(chat) == []


def test_yes_to_a_suggestion_is_not_passed_on() -> None:
    chat = open_request()
    chat("i forgot my pin")
    chat("yes")
    assert list_texts(chat) == []


def test_texts_are_passed_on_until_the_request_is_closed() -> None:
    chat = open_request()
    chat.gateway.overrides[ContactSupport] = [RequestRejected(code="REQUEST_NOT_FOUND")]
    assert "didn't understand" in chat("zq blorp xx")
    assert chat.person.support is None
    chat("zq blorp yy")
    assert list_texts(chat) == ["zq blorp xx"]


def test_customer_reads_when_support_takes_no_further_messages() -> None:
    chat = open_request()
    rejection = RequestRejected(code="RATE_LIMITED", details={"limit": 100})
    chat.gateway.overrides[ContactSupport] = [rejection]
    assert "didn't pass this one on" in chat("zq blorp xx")


def test_text_can_be_sent_again_when_the_gateway_was_unreachable() -> None:
    chat = open_request()
    chat.gateway.overrides[ContactSupport] = [GatewayUnreachable(uncertain=False)]
    chat("zq blorp xx")
    assert "passed that on" in chat("zq blorp xx")
    assert list_texts(chat) == ["zq blorp xx"] * 2


def test_texts_of_a_new_owner_of_the_number_are_not_passed_on() -> None:
    chat = open_request()
    chat(NumberChanged())
    chat("zq blorp xx")
    assert list_texts(chat) == []


@pytest.mark.parametrize("language", ["en", "fr"])
def test_person_with_a_hidden_number_verifies_it_first(language: Language) -> None:
    chat = ConversationDriver(language)
    chat.person = Person(address="user:ada", phone=None, language=language)
    chat("talk to a person")
    chat(PHONE)
    chat(CODE)
    chat("My card was charged twice")
    (request,) = chat.list_requests(ContactSupport)
    assert request.phone == PHONE
