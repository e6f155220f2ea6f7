"""Corrections inside a transfer, answers by emoji, and two wishes in one text."""

import pytest

from builders.conversation import (
    CARDLESS_PHONE,
    PAYEE_PHONE,
    PIN,
    ConversationDriver,
    resolve_text_message,
)
from cases import each
from tapgate.messenger import gateway_requests


def build_driver(*texts: str, language: str = "en") -> ConversationDriver:
    chat = ConversationDriver(language)
    for text in texts:
        chat(resolve_text_message(text))
    return chat


TRANSFER = f"send 50 to {PAYEE_PHONE}"


@each(
    "text, amount",
    [
        ("make it 15", "15.00"),
        ("no, 15", "15.00"),
        ("I mean fifteen", "15.00"),
        ("change it to 15 please", "15.00"),
        ("send 15 instead", "15.00"),
        ("mets plutôt 15", "15.00"),
        ("mek am fiftin", "15.00"),
    ],
)
def test_corrected_amount_is_confirmed_again_under_a_new_operation(text, amount):
    chat = build_driver(TRANSFER)
    before = chat.conversation.operation
    chat(resolve_text_message(text))
    assert chat.conversation.stage == "confirm"
    assert chat.conversation.facts["amount"] == amount
    assert f"Amount: *{amount} SLE*" in chat.reply_text
    assert chat.conversation.operation not in (None, before)
    chat("yes")
    chat(PIN)
    assert [payment.amount for payment in chat.gateway.payments] == [amount]


@each("text", ["make it two fifty", "not 50 but 60", "change the amount", "the amount is wrong"])
def test_correction_without_one_clear_amount_asks_for_it(text):
    chat = build_driver(TRANSFER, text)
    assert chat.conversation.step == "amount"
    assert not chat.gateway.payments


@each("text", ["no, not him", "change the number", "that's not her", "wrong person", "pas lui"])
def test_rejected_recipient_is_requested_again_and_the_amount_stays(text):
    chat = build_driver(TRANSFER, text)
    assert chat.conversation.step == "to"
    chat(CARDLESS_PHONE)
    assert chat.conversation.stage == "confirm"
    assert "Foday B." in chat.reply_text
    assert "*50.00 SLE*" in chat.reply_text


def test_corrected_recipient_may_be_in_the_same_text():
    chat = build_driver(TRANSFER, f"no, change the number to {CARDLESS_PHONE}")
    assert chat.conversation.stage == "confirm"
    assert "Foday B." in chat.reply_text


@each("text", ["who is that?", "who is she", "c'est qui ?", "udat na dat"])
def test_question_about_the_recipient_is_answered_before_the_confirmation(text):
    chat = build_driver(TRANSFER, text)
    assert "Aminata K." in chat.replies[0].text
    assert chat.conversation.stage == "confirm"


@each("text", ["wait", "one moment please", "attends"])
def test_waiting_keeps_the_confirmation_open(text):
    chat = build_driver(TRANSFER, text)
    assert "until you confirm" in chat.replies[0].text
    assert chat.conversation.stage == "confirm"
    assert not chat.gateway.payments


def test_amount_can_be_corrected_instead_of_the_pin():
    chat = build_driver(TRANSFER, "yes", "make it 15")
    assert chat.conversation.stage == "confirm"
    assert chat.conversation.facts["amount"] == "15.00"


def test_transfer_with_an_unknown_outcome_cannot_be_corrected():
    chat = build_driver(TRANSFER, "yes")
    chat.gateway.lost_responses.append(gateway_requests.SendMoney)
    chat(PIN)
    assert chat.conversation.uncertain
    chat(resolve_text_message("make it 15"))
    assert chat.conversation.facts["amount"] == "50.00"
    assert chat.conversation.stage == "await_pin"


def test_other_commands_and_people_are_not_corrections():
    chat = build_driver(TRANSFER, "i want to talk to another person")
    assert chat.conversation.command == "person"


@each("emoji", ["👍", "👍🏾", "👌", "✅"])
def test_thumbs_up_confirms(emoji):
    chat = build_driver(TRANSFER, emoji)
    assert chat.conversation.stage == "await_pin"


@each("emoji", ["👎", "❌"])
def test_thumbs_down_cancels(emoji):
    chat = build_driver(TRANSFER, emoji)
    assert chat.conversation.command is None
    assert "canceled" in chat.reply_text


def test_thumbs_up_without_a_question_gets_a_goodbye():
    assert "whenever you need me" in build_driver("👍").reply_text


# Two wishes


@each(
    "text",
    [
        f"check my balance and send 50 to {PAYEE_PHONE}",
        f"show me my balance. then transfer fifty to {PAYEE_PHONE}",
        f"chɛk mi balans ɛn sɛn 50 to {PAYEE_PHONE}",
    ],
)
def test_balance_is_shown_before_the_transfer_is_confirmed(text):
    chat = build_driver(text)
    assert "Your balance is" in chat.replies[0].text
    assert chat.conversation.stage == "confirm"
    assert chat.conversation.facts["amount"] == "50.00"
    assert not chat.gateway.payments


def test_second_wish_is_answered_after_the_transfer():
    chat = build_driver(f"send 50 to {PAYEE_PHONE} and then tell me my balance", "yes")
    assert "Your balance is" not in chat.reply_text
    chat(PIN)
    assert len(chat.gateway.payments) == 1
    assert "Done!" in chat.replies[0].text
    assert "Your balance is" in chat.replies[-1].text


def test_two_transfers_need_two_confirmations():
    chat = build_driver(f"send 50 to {PAYEE_PHONE} and send 20 to {CARDLESS_PHONE}", "yes")
    chat(PIN)
    assert chat.conversation.stage == "confirm"
    assert "Foday B." in chat.reply_text
    chat("yes")
    chat(PIN)
    assert [payment.amount for payment in chat.gateway.payments] == ["50.00", "20.00"]


@pytest.mark.parametrize("ending", ["cancel", "menu", "limits"])
def test_second_wish_ends_with_a_cancellation_or_another_command(ending):
    chat = build_driver(f"send 50 to {PAYEE_PHONE} and then tell me my balance", ending)
    assert "Your balance is" not in chat.reply_text
    assert chat.conversation.later is None


def test_stranger_reads_once_that_there_is_no_wallet():
    chat = ConversationDriver()
    chat.gateway.subscriber = None
    chat(resolve_text_message("show my balance and my last transactions"))
    assert chat.reply_text.count("no wallet") == 1


@each(
    "text",
    [
        "i sent money yesterday and the person says he did not get it",
        "I lost my phone. block my card",
        "hello and good morning",
        "send 50 to Fatu and Mohamed",
    ],
)
def test_reports_and_lists_are_one_wish(text):
    assert build_driver(text).conversation.later is None
