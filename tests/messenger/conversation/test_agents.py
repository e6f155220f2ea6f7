"""The agent's menu: float, cash-in, cash-out, commission, float requests; the customer's answer."""

from typing import Any

import pytest

from builders.conversation import (
    PAYEE_PHONE,
    PHONE,
    PIN,
    WRONG_PIN,
    ConversationDriver,
    resolve_text_message,
)
from cases import each
from tapgate.messenger.model import Agent, NumberChanged, Person, RequestRejected

AGENT = Agent(id="agt_me", name="Kissy Kiosk")


def start(language: Any = "en", *, has_wallet: bool = True) -> ConversationDriver:
    """Return a chat with an agent who has seen the agent's menu."""
    chat = ConversationDriver(language)
    chat.gateway.agent = AGENT
    if not has_wallet:
        chat.gateway.subscriber = None
    chat("menu")
    return chat


def say(chat: ConversationDriver, *texts: str) -> str:
    """Say texts in turn, and return the last reply."""
    reply = ""
    for text in texts:
        reply = chat(text)
    return reply


@each("language, greeting", [("en", "Hello Kissy Kiosk"), ("fr", "Bonjour Kissy Kiosk")])
def test_agent_gets_the_agents_menu(language: Any, greeting: str) -> None:
    chat = start(language)
    assert greeting in chat("menu")
    assert chat.last_offer is not None
    offered = [option.id for option in chat.last_offer.options]
    assert offered[:4] == ["cmd:float", "cmd:cash_in", "cmd:cash_out", "cmd:commission"]
    assert chat.person.role == "agent"


@pytest.mark.parametrize("has_wallet", [True, False])
def test_agent_switches_to_a_personal_wallet_and_back(has_wallet: bool) -> None:
    chat = start(has_wallet=has_wallet)
    reply = chat("own wallet")
    if not has_wallet:
        assert "no wallet of its own" in reply
        return
    assert "own wallet" in reply
    assert "Hello Mariama" in chat("menu")
    assert "1,000.00" in chat("balance")
    assert "Hello Kissy Kiosk" in chat("agent menu")
    assert "Hello Kissy Kiosk" in chat("menu")


@each(
    "text, command",
    [
        ("cash in", "cash_in"), ("deposit", "cash_in"), ("put moni", "cash_in"),
        ("dépôt", "cash_in"), ("dépôt client", "cash_in"), ("kɔstɔma put moni", "cash_in"),
        ("cash out", "cash_out"), ("kash awt", "cash_out"), ("retrait", "cash_out"),
        ("balance", "float"), ("mi balans", "float"), ("mi flot", "float"), ("mes fonds", "float"),
        ("float", "float"), ("tide", "float"),
        ("pay out commission", "commission"), ("pe mi kɔmishɔn", "commission"),
        ("verser ma commission", "commission"),
        ("request float", "request_float"), ("a want flot", "request_float"),
        ("besoin de fonds", "request_float"),
        ("float requests", "float_requests"), ("flot rikwɛst", "float_requests"),
        ("mes demandes de fonds", "float_requests"),
    ],
)  # fmt: skip
def test_words_start_agent_commands_in_three_languages(text: str, command: str) -> None:
    chat = start()
    chat(resolve_text_message(text))
    assert any(output.command == command for output in chat.outputs), text


@each("text", ["cash out", "deposit", "balance"])
def test_words_keep_their_meaning_for_customers(text: str) -> None:
    chat = ConversationDriver()
    chat("menu")
    chat(text)
    commands = {output.command for output in chat.outputs}
    assert not commands & {"cash_in", "cash_out", "float"}


def test_cash_in_asks_for_customer_amount_and_pin() -> None:
    chat = start()
    assert "customer's phone number" in chat("cash in")
    assert "How much does Aminata K. give you" in chat(PAYEE_PHONE)
    confirmation = chat("100")
    assert "Aminata K." in confirmation and "100.00" in confirmation
    assert "PIN" in chat("yes")
    receipt = chat(PIN)
    for part in ("100.00 SLE", "1,900.00 SLE", "1.00 SLE", "txn_1"):
        assert part in receipt
    (request,) = chat.list_requests("agents.cash_in")
    assert request.fields["agent_id"] == "agt_me"
    assert (request.fields["subscriber_id"], request.fields["card_serial"]) == ("sub_her", None)
    assert request.moves_money
    assert "Cash-ins: 1, 100.00" in chat("float")


def test_sentence_names_customer_and_amount() -> None:
    chat = start()
    reply = say(chat, "cash in", "AM-1001", "50")
    assert "AM-1001" in reply and "50.00" in reply
    say(chat, "yes", PIN)
    (request,) = chat.list_requests("agents.cash_in")
    assert (request.fields["subscriber_id"], request.fields["card_serial"]) == (None, "AM-1001")


def test_question_is_repeated_for_an_unknown_customer() -> None:
    chat = start()
    assert "no customer" in say(chat, "cash in", "+23276999999")
    assert "How much" in chat(PAYEE_PHONE)


def test_cash_in_above_the_float_offers_float() -> None:
    chat = start()
    reply = say(chat, "cash in", PAYEE_PHONE, "2500", "yes", PIN)
    assert "float is too low" in reply
    assert chat.conversation.stage == "idle"


def test_lost_response_is_retried_with_the_same_key() -> None:
    chat = start()
    chat.gateway.lost_responses = ["agents.cash_in"]
    reply = say(chat, "cash in", PAYEE_PHONE, "100", "yes", PIN)
    assert "not certain" in reply
    assert "1,900.00 SLE" in chat(PIN)
    first, second = chat.list_requests("agents.cash_in")
    assert first.fields["request_id"] == second.fields["request_id"]
    assert chat.gateway.float.cash_ins == [100_00]


def test_wrong_agent_pin_can_be_repeated_until_it_locks() -> None:
    chat = start()
    say(chat, "cash in", PAYEE_PHONE, "100", "yes")
    assert "2" in chat(WRONG_PIN)
    chat(WRONG_PIN)
    assert "locked" in chat(WRONG_PIN)
    assert chat.gateway.float.cash_ins == []


def test_cash_out_waits_for_the_customer() -> None:
    chat = start()
    reply = say(chat, "cash out", PAYEE_PHONE, "80", "yes", PIN)
    assert "within 5 minutes" in reply and "80.00" in reply
    assert chat.gateway.float.balance == 2_000_00
    again = say(chat, "cash out", PAYEE_PHONE, "80", "yes", PIN)
    assert "already has a cash-out to answer" in again


def ask_customer() -> ConversationDriver:
    """Return a customer's chat in which an agent's cash-out waits."""
    chat = ConversationDriver()
    chat.gateway.float.ask_for_float("80.00")
    return chat


@each(
    "text", ["confirm cash-out", "confirm cash out", "a gri fɔ di kash awt", "confirmer le retrait"]
)
def test_customer_confirms_with_the_customer_pin(text: str) -> None:
    chat = ask_customer()
    reply = chat(text)
    assert "Kissy Kiosk" in reply and "80.00" in reply
    assert "PIN" in chat("yes")
    assert "txn_9" in chat(PIN)
    assert chat.gateway.float.balance == 2_080_00
    assert "No cash-out waits" in chat("confirm cash-out")


@each("text", ["no", "cancel"])
def test_customer_declines(text: str) -> None:
    chat = ask_customer()
    chat("confirm cash-out")
    assert "Declined" in chat(text)
    assert chat.gateway.float.balance == 2_000_00
    assert len(chat.list_requests("cash_out_requests.decline_cash_out")) == 1


def test_confirmation_that_ended_is_explained() -> None:
    chat = ask_customer()
    say(chat, "confirm cash-out", "yes")
    chat.gateway.overrides["cash_out_requests.confirm_cash_out"] = [
        RequestRejected(code="CASH_OUT_REQUEST_NOT_OPEN")
    ]
    assert "already answered or has expired" in chat(PIN)


def test_commission_is_paid_out_with_the_pin() -> None:
    chat = start()
    assert "no commission" in chat("commission")
    chat.gateway.float.commission = 12_50
    assert "12.50" in chat("commission")
    chat("yes")
    assert "2,012.50 SLE" in chat(PIN)
    assert chat.gateway.float.commission == 0


def test_agent_requests_float_and_cancels_the_request() -> None:
    chat = start()
    assert "How much float" in chat("request float")
    chat("300")
    assert "finance team" in chat("yes")
    (item,) = chat.gateway.float.float_requests.values()
    assert item.amount == "300"
    assert "300.00" in chat("float requests")
    chat.choose_option("withdraw_request")
    assert chat.gateway.float.float_requests == {}
    assert "no open float requests" in chat("float requests")


@each("answer, operation", [("send_float", "fund_by_transfer"), ("pass_on", "pass_on")])
def test_super_agent_funds_or_passes_on(answer: str, operation: str) -> None:
    chat = start()
    say(chat, "request float", "300", "yes")
    (item,) = chat.gateway.float.float_requests.values()
    item.is_own = False
    assert "asks you for float" in chat("float requests")
    chat.choose_option(answer)
    if answer == "send_float":
        chat(PIN)
    (request,) = chat.list_requests(f"float_requests.{operation}")
    assert request.arguments == (item.id,)
    assert ("pin" in request.fields) == (answer == "send_float")


def test_several_float_requests_are_chosen_from_a_list() -> None:
    chat = start()
    for amount in ("300", "400"):
        say(chat, "request float", amount, "yes")
    chat("float requests")
    chat.choose_option("frq_1")
    chat.choose_option("leave")
    assert len(chat.gateway.float.float_requests) == 2


def test_person_who_is_no_agent_gets_no_agent_services() -> None:
    chat = ConversationDriver()
    assert "does not belong to an agent" in chat("float")
    assert chat.person.role is None


def test_suspended_agent_gets_an_explanation() -> None:
    chat = start()
    chat.gateway.agent = Agent(id="agt_me", name="Kissy Kiosk", status="suspended")
    assert "not active" in chat("float")


def test_new_owner_of_a_number_sees_no_float() -> None:
    chat = start()
    chat(NumberChanged())
    chat.person = Person(address=PHONE, phone=PHONE, language="en", trusted=False)
    for text in ("float", "request float", "agent menu"):
        reply = chat(text)
        assert "changed recently" in reply and "2,000" not in reply
    assert "Kissy" not in chat("menu")
