"""Send money: questions, confirmation, PIN entry, and exactly one payment."""

import msgspec
import pytest

from messenger.conversation.builders import (
    CARDLESS_PHONE,
    PAYEE_PHONE,
    PIN,
    WRONG_PIN,
    ConversationDriver,
    PaymentRecord,
    build_text_message,
)
from tapgate.messenger.model import gateway_requests
from tapgate.messenger.model.events import (
    FormClosed,
    FormSubmitted,
    GatewayUnreachable,
    OptionChosen,
    RequestRejected,
    RequestSucceeded,
    TextMessage,
)
from tapgate.messenger.model.people import Recipient, SaveRecipient
from tapgate.messenger.model.replies import PinRequest

AMINATA = Recipient(name="Aminata K.", card_serial="AM-1001")


def drive_to_confirmation(**setting: object) -> ConversationDriver:
    story = ConversationDriver(**setting)
    story("send money")
    story("AM-1001")
    story("500")
    return story


def drive_to_pin(**setting: object) -> ConversationDriver:
    story = drive_to_confirmation(**setting)
    story("yes")
    return story


@pytest.mark.parametrize(
    ("language", "command", "yes", "done"),
    [("en", "send money", "yes", "Done!"), ("fr", "envoyer", "oui", "C'est fait")],
)
def test_payment_step_by_step_pays_once(language, command, yes, done):
    story = ConversationDriver(language)
    story(command)
    story("AM-1001")
    assert "Aminata K." in story.reply_text
    shown = story("500")
    for part in ("Aminata K.", "AM-1001", "500.00 SLE", "7.50 SLE", "507.50 SLE"):
        assert part in shown
    assert story.conversation.stage == "confirm"
    story(yes)
    assert story.conversation.is_awaiting_pin
    receipt = story(PIN)
    for part in (done, "500.00 SLE", "7.50 SLE", "492.50 SLE", "txn_"):
        assert part in receipt
    assert [(p.card_serial, p.amount) for p in story.gateway.payments] == [("AM-1001", "500.00")]
    assert story.conversation.stage == "idle"


def test_sentence_with_amount_and_recipient_goes_to_confirmation():
    story = ConversationDriver()
    shown = story(build_text_message("send 500 to 076222222", "send"))
    assert story.conversation.stage == "confirm"
    assert story.list_calls(gateway_requests.FindPayeeByPhone)[0].phone == PAYEE_PHONE
    assert "507.50 SLE" in shown


def test_amount_and_recipient_without_the_keyword_start_a_payment():
    story = ConversationDriver()
    story("500 to 076222222")
    assert story.conversation.stage == "confirm"


def test_operation_is_saved_before_the_pin_is_entered():
    story = drive_to_pin()
    operation = story.conversation.operation
    story(PIN)
    assert story.gateway.payments[0].request_id == operation


def test_event_replayed_after_a_crash_requests_the_same_payment():
    story = drive_to_pin()
    story.handle_event(build_text_message(PIN))
    story(PIN)
    assert len(story.gateway.payments) == 1
    assert len(story.list_calls(gateway_requests.SendMoney)) == 2


def test_payment_with_the_pin_form_pays_once():
    story = drive_to_pin(pin_entry_mode="form")
    form = story.replies[-1]
    assert isinstance(form, PinRequest)
    assert form.operation == story.conversation.operation
    assert "500.00 SLE" in form.text
    assert "Done!" in story.submit_pin_form()
    assert len(story.gateway.payments) == 1
    assert story(FormClosed()) == ""


def test_form_of_another_operation_is_rejected():
    story = drive_to_pin(pin_entry_mode="form")
    answer = story(FormSubmitted(operation="op-0", pin=PIN))
    assert "form has expired" in answer
    assert story.gateway.payments == []
    assert story.conversation.is_awaiting_pin


def test_closed_form_is_sent_again():
    story = drive_to_pin(pin_entry_mode="form")
    story(FormClosed())
    assert isinstance(story.replies[-1], PinRequest)


def test_wrong_pin_in_a_form_is_reported_once():
    story = drive_to_pin(pin_entry_mode="form")
    assert "You have 2 tries left" in story.submit_pin_form(WRONG_PIN)
    assert story(FormClosed()) == ""
    assert story.conversation.is_awaiting_pin


def test_pin_as_text_is_rejected_in_form_mode():
    story = drive_to_pin(pin_entry_mode="form")
    answer = story(PIN)
    assert "don't send your PIN" in answer
    assert isinstance(story.replies[-1], PinRequest)
    assert story.gateway.payments == []


def test_payment_is_unavailable_without_pin_entry():
    story = ConversationDriver(pin_entry_mode="none")
    assert "isn't safe to share" in story("send money")
    assert story.conversation.stage == "idle"


def test_repeated_wrong_pins_lock_the_pin():
    story = drive_to_pin()
    operation = story.conversation.operation
    assert "You have 2 tries left" in story(WRONG_PIN)
    assert "You have 1 try left" in story(WRONG_PIN)
    assert story.conversation.operation == operation
    assert "locked" in story(WRONG_PIN)
    assert story.conversation.stage == "idle"
    story("send money")
    story("AM-1001")
    story("5")
    story("yes")
    assert "14 Mar 2026, 10:00" in story(PIN)
    assert story.gateway.payments == []


def test_retry_after_a_wrong_pin_uses_the_same_operation():
    story = drive_to_pin()
    story(WRONG_PIN)
    story(PIN)
    assert len({call.request_id for call in story.list_calls(gateway_requests.SendMoney)}) == 1
    assert len(story.gateway.payments) == 1


def test_retry_after_a_lost_response_pays_once():
    story = drive_to_pin()
    story.gateway.lost_responses = [gateway_requests.SendMoney]
    assert "won't be charged twice" in story(PIN)
    assert story.conversation.uncertain
    assert "Done!" in story(PIN)
    assert len(story.gateway.payments) == 1


def test_cancel_after_a_lost_response_warns_that_the_payment_may_have_succeeded():
    story = drive_to_pin()
    story.gateway.lost_responses = [gateway_requests.SendMoney]
    story(PIN)
    assert "may have gone through" in story("cancel")
    assert story.conversation.operation is None


def test_internal_error_leaves_the_outcome_uncertain():
    story = drive_to_pin()
    story.gateway.overrides = {gateway_requests.SendMoney: [RequestRejected(code="INTERNAL_ERROR")]}
    assert "won't be charged twice" in story(PIN)
    assert "Done!" in story(PIN)


def test_unsent_request_does_not_leave_the_outcome_uncertain():
    story = drive_to_pin()
    story.gateway.overrides = {gateway_requests.SendMoney: [GatewayUnreachable(uncertain=False)]}
    assert "can't reach the payment service" in story(PIN)
    assert not story.conversation.uncertain
    assert "Done!" in story(PIN)


def test_decline_ends_the_operation():
    story = drive_to_pin()
    story.gateway.balance = 0
    assert "don't have enough money" in story(PIN)
    first = story.list_calls(gateway_requests.SendMoney)[0].request_id
    story.gateway.balance = 1_000_00
    for word in ("send money", "AM-1001", "500", "yes", PIN):
        story(word)
    assert story.gateway.payments == [
        PaymentRecord(
            story.list_calls(gateway_requests.SendMoney)[1].request_id, "AM-1001", "500.00"
        )
    ]
    assert story.gateway.payments[0].request_id != first


@pytest.mark.parametrize("word", ["yes", PIN])
def test_repeated_input_after_completion_does_not_pay_again(word):
    story = drive_to_pin()
    story(PIN)
    answer = story(word)
    assert len(story.gateway.payments) == 1
    assert story.conversation.stage == "idle"
    assert "not waiting for a yes or no" in answer or "didn't ask" in answer


def test_late_yes_repeats_the_confirmation():
    for event in (build_text_message("yes", is_late=True), None):
        story = drive_to_confirmation()
        if event is None:
            story.choose_option("yes", late=True)
        else:
            story(event)
        assert story.conversation.stage == "confirm"
        assert "late" in story.reply_text


def test_guessed_yes_repeats_the_confirmation():
    story = drive_to_confirmation()
    story(build_text_message("yeah why not", "yes"))
    assert story.conversation.stage == "confirm"


def test_late_pin_is_not_used():
    story = drive_to_pin()
    story(build_text_message(PIN, is_late=True))
    assert story.gateway.payments == []
    assert story.conversation.is_awaiting_pin


def test_button_of_an_earlier_confirmation_has_expired():
    story = drive_to_confirmation()
    old = story.get_option_id("yes")
    story("no")
    for word in ("send money", "AM-1001", "700"):
        story(word)
    assert "expired" in story(OptionChosen(id=old))
    assert story.conversation.stage == "confirm"


def test_no_or_cancel_ends_the_payment():
    for word in ("no", "cancel"):
        story = drive_to_confirmation()
        assert "canceled" in story(word)
        assert story.conversation.stage == "idle"


def test_withheld_text_is_requested_again():
    story = drive_to_pin()
    answer = story(TextMessage(text=None))
    assert "send it again" in answer
    assert story.conversation.is_awaiting_pin


def test_another_command_cancels_the_payment():
    story = drive_to_pin()
    answer = story("balance")
    assert "canceled: *Send money*" in answer
    assert "1,000.00 SLE" in answer
    assert "didn't ask" in story(PIN)
    assert story.gateway.payments == []


def test_insufficient_funds_asks_for_a_smaller_amount():
    story = ConversationDriver()
    story("send money")
    story("AM-1001")
    answer = story("50000")
    assert "don't have enough money" in answer
    assert "instead" in answer
    assert story("10").count("10.00 SLE")
    assert story.conversation.stage == "confirm"


@pytest.mark.parametrize(
    ("recipient", "answer"),
    [
        ("TG-0001", "your own wallet"),
        ("XX-9999", "can't find a card"),
        ("+23276999999", "no wallet with that phone number"),
        (CARDLESS_PHONE, "no active card"),
        ("who knows", "card number or phone number"),
    ],
)
def test_recipient_that_cannot_be_paid_is_rejected(recipient, answer):
    story = ConversationDriver()
    story("send money")
    assert answer in story(recipient)
    assert story.conversation.piece == "to"
    story("AM-1001")
    assert story.conversation.piece == "amount"


def test_recipient_is_saved_on_request():
    story = drive_to_pin()
    story(PIN)
    story.choose_option("keep")
    assert story.effects == [SaveRecipient(recipient=AMINATA)]
    assert "*send 50 to Aminata*" in story.reply_text
    story("send money")
    story.choose_option("card:AM-1001")
    assert story.conversation.piece == "amount"


def test_saved_recipient_is_chosen_by_number_or_name():
    for name in ("1", "aminata"):
        story = ConversationDriver()
        story.person = save_recipient(story)
        story("send money")
        story(name)
        assert story.conversation.piece == "amount"
        for word in ("5", "yes", PIN):
            story(word)
        assert "Save contact" not in story.reply_text


def test_saved_recipient_with_an_unknown_card_is_removed():
    story = ConversationDriver()
    story.person = save_recipient(story, Recipient(name="Old C.", card_serial="GONE-1"))
    story("send money")
    assert "no longer in use" in story("1")
    assert story.person.recipients == ()


def save_recipient(story: ConversationDriver, recipient: Recipient = AMINATA):
    return msgspec.structs.replace(story.person, recipients=(recipient,))


def test_receipt_states_that_the_payment_is_under_review():
    story = drive_to_pin()
    receipt = gateway_requests.Receipt(
        transaction_id="txn_9",
        status="under_review",
        amount="500.00 SLE",
        fee_amount="7.50 SLE",
        new_balance="492.50 SLE",
        recipient_name="Aminata K.",
    )
    story.gateway.overrides = {gateway_requests.SendMoney: [RequestSucceeded(result=receipt)]}
    assert "under review" in story(PIN)


def test_blocked_recipient_is_reported():
    story = drive_to_pin()
    refused = RequestRejected(code="SUBSCRIBER_BLOCKED", details={"party": "receiver"})
    story.gateway.overrides = {gateway_requests.SendMoney: [refused]}
    assert "The recipient can't" in story(PIN)


def test_guessed_command_does_not_replace_an_open_question():
    story = ConversationDriver()
    story("send money")
    story(build_text_message("what have I got", "balance"))
    assert story.conversation.command == "send"
    story("balance")
    assert story.conversation.command is None
