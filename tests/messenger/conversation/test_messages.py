"""Opting out of messages, and objecting to a phone number change."""

import pytest

from builders.conversation import ConversationDriver
from tapgate.messenger.model import OptionChosen

UPDATE = "subscribers.update"


@pytest.mark.parametrize(
    "text",
    ["STOP", "stop", "Stop!", "STOP ALL", "stop all.", "Unsubscribe", "ARRET", "ARRÊT", "arrêt !"],
)
def test_stop_words_leave_only_essential_messages(text: str) -> None:
    chat = ConversationDriver()
    assert "You still get what is essential" in chat(text)
    assert chat.gateway.messages == "essential"
    assert "*START*" in chat.reply_text


@pytest.mark.parametrize("text", ["START", "start", "Start."])
def test_start_brings_all_messages_back(text: str) -> None:
    chat = ConversationDriver()
    chat("STOP")
    assert "all messages again" in chat(text)
    assert chat.gateway.messages == "all"


def test_reply_is_in_the_language_of_the_person() -> None:
    assert "l'essentiel" in ConversationDriver("fr")("STOP")


def test_stop_in_a_dialog_cancels_it_and_opts_out() -> None:
    chat = ConversationDriver()
    chat("send 10 to AM-1001")
    assert chat.conversation.stage == "confirm"
    reply = chat("STOP")
    assert "essential" in reply
    assert chat.gateway.messages == "essential"
    chat("yes")
    assert chat.gateway.payments == []
    assert chat.conversation.stage == "idle"


def test_stop_at_the_pin_question_cancels_and_opts_out() -> None:
    chat = ConversationDriver()
    chat("send 10 to AM-1001")
    chat("yes")
    assert chat.conversation.is_awaiting_pin
    chat("stop")
    assert (chat.gateway.messages, chat.gateway.payments) == ("essential", [])


@pytest.mark.parametrize("text", ["cancel", "annuler"])
def test_cancel_only_cancels(text: str) -> None:
    chat = ConversationDriver()
    chat("send 10 to AM-1001")
    chat(text)
    assert chat.conversation.stage == "idle"
    assert chat.gateway.messages == "all"
    assert chat.list_requests(UPDATE) == []


def test_stranger_gets_no_messages_anyway() -> None:
    chat = ConversationDriver()
    chat.gateway.subscriber = None
    assert "has no wallet" in chat("STOP")
    assert chat.list_requests(UPDATE) == []


@pytest.mark.parametrize(
    ("language", "text", "reply"),
    [
        ("en", "not me", "blocked the wallet"),
        ("en", "NOT ME", "blocked the wallet"),
        ("en", "This wasn't me", "blocked the wallet"),
        ("fr", "PAS MOI", "bloqué le portefeuille"),
        ("fr", "Ce n'est pas moi", "bloqué le portefeuille"),
    ],
)
def test_replaced_number_objects(language: str, text: str, reply: str) -> None:
    chat = ConversationDriver(language)
    chat.gateway.subscriber = None  # the number is no longer the subscriber's
    chat.gateway.was_number_replaced = True
    assert reply in chat(text)
    assert chat.person.support == "open"


def test_button_of_the_notice_objects() -> None:
    chat = ConversationDriver()
    chat.gateway.was_number_replaced = True
    assert "blocked the wallet" in chat(OptionChosen(id="cmd:not_me"))


def test_any_other_number_is_offered_support() -> None:
    chat = ConversationDriver()
    assert "No phone number was changed" in chat("not me")
    chat("yes")
    assert chat.conversation.command == "person"
