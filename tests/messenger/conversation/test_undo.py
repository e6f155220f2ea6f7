"""Money back in the chat: recalls, the answers to them, and disputes of card payments."""

import pytest

from builders.conversation import (
    PIN,
    ConversationDriver,
    build_payment,
    build_pending_recall,
    build_recall,
)
from tapgate.messenger.gateway_requests import ListTransactions
from tapgate.messenger.model import OptionChosen, RequestRejected, RequestSucceeded

RECALL = "recalls.recall_transfer"
RETURN = "recalls.return_recalled_transfer"
KEEP = "recalls.keep_recalled_transfer"
DISPUTE = "disputes.create"


def create_sender(language: str = "en") -> ConversationDriver:
    chat = ConversationDriver(language)
    chat.gateway.undoable = [
        build_payment("transfer_p2p"),
        build_payment("transfer_p2p", "txn_2", "Isatu K."),
        build_payment("pos_payment", "txn_3", "Corner shop"),
    ]
    return chat


@pytest.mark.parametrize(
    ("language", "text", "reply"),
    [
        ("en", "wrong person", "on hold for 24 hours"),
        ("en", "wrong recipient", "on hold for 24 hours"),
        ("fr", "mauvais destinataire", "est retenu pendant 24 heures"),
    ],
)
def test_wrong_person_offers_to_recall_a_transfer(language: str, text: str, reply: str) -> None:
    chat = create_sender(language)
    chat(text)
    chat.choose_option("txn_2")
    assert "Isatu K." in chat.reply_text
    assert reply in chat(PIN)
    (request,) = chat.list_requests(RECALL)
    assert request.arguments == ("txn_2",)
    assert request.fields == {"pin": PIN, "request_id": request.fields["request_id"]}


def test_only_transfers_can_be_recalled() -> None:
    chat = create_sender()
    chat("wrong person")
    with pytest.raises(StopIteration):
        chat.get_option_id("txn_3")


def test_repeated_pin_keeps_the_request_id() -> None:
    chat = create_sender()
    chat("wrong person")
    chat.choose_option("txn_1")
    chat.gateway.lost_responses.append(RECALL)
    chat(PIN)
    chat(PIN)
    first, again = chat.list_requests(RECALL)
    assert first.fields["request_id"] == again.fields["request_id"]


@pytest.mark.parametrize(
    ("details", "reply"),
    [({}, "can't be recalled"), ({"open": 3}, "already asked for 3 transfers")],
)
def test_transfer_that_cannot_be_recalled(details: dict[str, int], reply: str) -> None:
    chat = create_sender()
    chat("wrong person")
    chat.choose_option("txn_1")
    chat.gateway.overrides[RECALL] = [RequestRejected(code="NOT_RECALLABLE", details=details)]
    assert reply in chat(PIN)
    chat("yes")
    assert chat.conversation.command == "person"


def test_recall_with_nothing_left_says_so() -> None:
    chat = create_sender()
    chat("wrong person")
    chat.choose_option("txn_1")
    chat.gateway.overrides[RECALL] = [RequestSucceeded(result=build_recall("open", "0.00"))]
    assert "nothing left of it to hold" in chat(PIN)


@pytest.mark.parametrize("text", ["return it", "RETURN", "Return.", "give it back"])
def test_receiver_returns_the_money_with_the_pin(text: str) -> None:
    chat = ConversationDriver()
    chat.gateway.pending_recalls = [build_pending_recall()]
    assert "confirm with your PIN" in chat(text)
    assert chat.list_requests(RETURN) == []
    assert "Aminata 1 has 60.00 SLE back" in chat(PIN)
    (request,) = chat.list_requests(RETURN)
    assert (request.arguments, request.fields) == (("rcl_1",), {"pin": PIN})


@pytest.mark.parametrize(
    ("language", "text", "reply"),
    [("en", "KEEP", "You keep 60.00 SLE"), ("fr", "GARDER", "Vous gardez 60,00\u00a0SLE")],
)
def test_receiver_keeps_the_money_without_a_pin(language: str, text: str, reply: str) -> None:
    chat = ConversationDriver(language)
    chat.gateway.pending_recalls = [build_pending_recall()]
    assert reply in chat(text)
    assert chat.list_requests(KEEP)[0].arguments == ("rcl_1",)


def test_button_of_the_recall_question_answers_it() -> None:
    chat = ConversationDriver()
    chat.gateway.pending_recalls = [build_pending_recall()]
    assert "You keep" in chat(OptionChosen(id="cmd:keep_money"))


def test_receiver_of_several_recalls_chooses_one() -> None:
    chat = ConversationDriver()
    chat.gateway.pending_recalls = [build_pending_recall(1), build_pending_recall(2)]
    chat("keep it")
    chat.choose_option("rcl_2")
    assert chat.list_requests(KEEP)[0].arguments == ("rcl_2",)


def test_button_of_the_recall_question_chooses_its_recall() -> None:
    chat = ConversationDriver()
    chat.gateway.pending_recalls = [build_pending_recall(1), build_pending_recall(2)]
    assert "You keep" in chat(OptionChosen(id="cmd:keep_money:rcl_2"))
    assert chat.list_requests(KEEP)[0].arguments == ("rcl_2",)
    assert "already ended" in chat(OptionChosen(id="cmd:return_money:rcl_3"))
    assert chat.list_requests(RETURN) == []


def test_receiver_without_an_open_recall_reads_that_there_is_none() -> None:
    assert "Nobody is asking you" in ConversationDriver()("return it")


@pytest.mark.parametrize(
    ("code", "reply"),
    [("RECALL_NOT_OPEN", "already ended"), ("INSUFFICIENT_FUNDS", "can't be returned here")],
)
def test_return_that_is_not_possible(code: str, reply: str) -> None:
    chat = ConversationDriver()
    chat.gateway.pending_recalls = [build_pending_recall()]
    chat("return it")
    chat.gateway.overrides[RETURN] = [RequestRejected(code=code)]
    assert reply in chat(PIN)


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "What is wrong with the payment of 100.00 SLE to Bakery?"),
        ("fr", "Quel est le problème avec le paiement de 100,00\u00a0SLE à Bakery ?"),
    ],
)
def test_button_below_a_payment_asks_only_for_the_reason(language: str, question: str) -> None:
    chat = create_sender(language)
    chat.gateway.undoable.append(build_payment("online_payment", "txn_4", "Bakery"))
    assert question in chat(OptionChosen(id="cmd:dispute:txn_4"))
    chat.choose_option("duplicate")
    chat("Charged two times")
    assert chat.list_requests(DISPUTE)[0].fields["transaction_id"] == "txn_4"


@pytest.mark.parametrize("transaction_id", ["txn_1", "txn_9", "x" * 200])
def test_button_below_a_payment_that_cannot_be_disputed(transaction_id: str) -> None:
    chat = create_sender()
    assert "can't be disputed" in chat(OptionChosen(id=f"cmd:dispute:{transaction_id}"))
    assert chat.conversation.command is None


def open_dispute(chat: ConversationDriver, text: str = "something wrong?") -> None:
    chat(text)
    chat.choose_option("txn_3")
    chat.choose_option("not_received")


@pytest.mark.parametrize(
    ("language", "text", "reply"),
    [
        ("en", "something wrong?", "We have opened a dispute of 100.00 SLE at Corner shop"),
        ("fr", "un problème ?", "Nous avons ouvert une contestation de 100,00\u00a0SLE"),
    ],
)
def test_dispute_of_a_card_payment(language: str, text: str, reply: str) -> None:
    chat = create_sender(language)
    open_dispute(chat, text)
    assert reply in chat("The shoes never came")
    (request,) = chat.list_requests(DISPUTE)
    assert request.fields == {
        "transaction_id": "txn_3",
        "reason": "not_received",
        "description": "The shoes never came",
        "request_id": "chat-txn_3",
    }
    assert "shoes" not in str(chat.conversation)


def test_description_of_a_dispute_can_be_skipped() -> None:
    chat = create_sender()
    open_dispute(chat)
    chat.choose_option("skip")
    assert chat.list_requests(DISPUTE)[0].fields["description"] is None


def test_pin_is_not_passed_on_as_a_description() -> None:
    chat = create_sender()
    open_dispute(chat)
    chat(f"my pin is {PIN}")
    assert chat.list_requests(DISPUTE) == []


@pytest.mark.parametrize(
    ("code", "reply"),
    [
        ("ALREADY_DISPUTED", "already disputed"),
        ("DUPLICATE_REQUEST", "already disputed"),
        ("NOT_DISPUTABLE", "can't be disputed"),
    ],
)
def test_dispute_that_is_not_possible(code: str, reply: str) -> None:
    chat = create_sender()
    open_dispute(chat)
    chat.gateway.overrides[DISPUTE] = [RequestRejected(code=code)]
    assert reply in chat("Never came")


def test_dispute_without_card_payments_offers_other_help() -> None:
    chat = ConversationDriver()
    assert "no card payment" in chat("dispute")
    assert chat.get_option_id("cmd:wrong_recipient")


@pytest.mark.parametrize(
    ("transaction_type", "is_offered"), [("pos_payment", True), ("transfer_p2p", False)]
)
def test_history_asks_below_card_payments_if_something_is_wrong(
    transaction_type: str, is_offered: bool
) -> None:
    chat = ConversationDriver()
    found = RequestSucceeded(result=[build_payment(transaction_type)])
    chat.gateway.overrides[ListTransactions] = [found]
    chat("history")
    assert ("Something wrong?" in chat.reply_text) == is_offered
