"""Send money: questions, confirmation, PIN entry, and exactly one payment."""

import msgspec

from builders.conversation import (
    CARDLESS_PHONE,
    PAYEE_PHONE,
    PIN,
    WRONG_PIN,
    ConversationDriver,
    PaymentRecord,
    build_receipt,
    build_text_message,
)
from cases import each
from tapgate.messenger import gateway_requests
from tapgate.messenger.conversation.turn import MAX_RECIPIENTS, Turn
from tapgate.messenger.model import (
    FormClosed,
    FormSubmitted,
    GatewayUnreachable,
    OptionChosen,
    PinRequest,
    Recipient,
    RequestRejected,
    RequestSucceeded,
    TextMessage,
)
from tapgate.messenger.texts import format_money

AMINATA = Recipient(name="Aminata K.", payee="AM-1001")


def drive_to_confirmation(**setting: object) -> ConversationDriver:
    chat = ConversationDriver(**setting)
    chat("send money")
    chat("AM-1001")
    chat("500")
    return chat


def drive_to_pin(**setting: object) -> ConversationDriver:
    chat = drive_to_confirmation(**setting)
    chat("yes")
    return chat


@each(
    "language, command, yes, done",
    [("en", "send money", "yes", "Done!"), ("fr", "envoyer", "oui", "C'est fait")],
)
def test_payment_step_by_step_pays_once(language, command, yes, done):
    def render(amount):
        return format_money(amount, "SLE", language)

    chat = ConversationDriver(language)
    chat(command)
    chat("AM-1001")
    assert "Aminata K." in chat.reply_text
    text = chat("500")
    for part in ("Aminata K.", "AM-1001", render("500.00"), render("7.50"), render("507.50")):
        assert part in text
    assert chat.conversation.stage == "confirm"
    chat(yes)
    assert chat.conversation.is_awaiting_pin
    receipt = chat(PIN)
    for part in (done, render("500.00"), render("7.50"), render("492.50"), "txn_"):
        assert part in receipt
    assert [(p.card_serial, p.amount) for p in chat.gateway.payments] == [("AM-1001", "500.00")]
    assert chat.conversation.stage == "idle"


def test_sentence_with_amount_and_recipient_leads_to_the_confirmation():
    chat = ConversationDriver()
    text = chat(build_text_message("send 500 to 076222222", "send"))
    assert chat.conversation.stage == "confirm"
    assert chat.list_requests(gateway_requests.FindPayeeByPhone)[0].phone == PAYEE_PHONE
    assert "507.50 SLE" in text


def test_amount_and_recipient_without_the_keyword_start_a_payment():
    chat = ConversationDriver()
    chat("500 to 076222222")
    assert chat.conversation.stage == "confirm"


def test_operation_id_stored_before_the_pin_becomes_the_request_id():
    chat = drive_to_pin()
    operation = chat.conversation.operation
    chat(PIN)
    assert chat.gateway.payments[0].request_id == operation


def test_event_replayed_after_a_crash_requests_the_same_payment():
    chat = drive_to_pin()
    chat.handle_event(build_text_message(PIN))
    chat(PIN)
    assert len(chat.gateway.payments) == 1
    assert len(chat.list_requests(gateway_requests.SendMoney)) == 2


def test_payment_with_the_pin_form_pays_once():
    chat = drive_to_pin(pin_entry_mode="form")
    form = chat.replies[-1]
    assert isinstance(form, PinRequest)
    assert form.operation == chat.conversation.operation
    assert "500.00 SLE" in form.text
    assert "Done!" in chat.submit_pin_form()
    assert len(chat.gateway.payments) == 1
    assert chat(FormClosed()) == ""


def test_form_of_another_operation_is_rejected():
    chat = drive_to_pin(pin_entry_mode="form")
    reply = chat(FormSubmitted(operation="op-0", pin=PIN))
    assert "form has expired" in reply
    assert chat.gateway.payments == []
    assert chat.conversation.is_awaiting_pin


def test_closed_form_is_sent_again():
    chat = drive_to_pin(pin_entry_mode="form")
    chat(FormClosed())
    assert isinstance(chat.replies[-1], PinRequest)


def test_wrong_pin_in_a_form_is_reported_once():
    chat = drive_to_pin(pin_entry_mode="form")
    assert "You have 2 tries left" in chat.submit_pin_form(WRONG_PIN)
    assert chat(FormClosed()) == ""
    assert chat.conversation.is_awaiting_pin


def test_pin_as_text_is_rejected_in_form_mode():
    chat = drive_to_pin(pin_entry_mode="form")
    reply = chat(PIN)
    assert "don't send your PIN" in reply
    assert isinstance(chat.replies[-1], PinRequest)
    assert chat.gateway.payments == []


def test_payment_is_unavailable_without_pin_entry():
    chat = ConversationDriver(pin_entry_mode="none")
    assert "isn't safe to share" in chat("send money")
    assert chat.conversation.stage == "idle"


def test_repeated_wrong_pins_lock_the_pin():
    chat = drive_to_pin()
    operation = chat.conversation.operation
    assert "You have 2 tries left" in chat(WRONG_PIN)
    assert "You have 1 try left" in chat(WRONG_PIN)
    assert chat.conversation.operation == operation
    assert "locked" in chat(WRONG_PIN)
    assert chat.conversation.stage == "idle"
    chat("send money")
    chat("AM-1001")
    chat("5")
    chat("yes")
    assert "14 Mar 2026, 10:00" in chat(PIN)
    assert chat.gateway.payments == []


def test_retry_after_a_wrong_pin_uses_the_same_operation():
    chat = drive_to_pin()
    chat(WRONG_PIN)
    chat(PIN)
    count = len({request.request_id for request in chat.list_requests(gateway_requests.SendMoney)})
    assert count == 1
    assert len(chat.gateway.payments) == 1


def test_retry_after_a_lost_response_pays_once():
    chat = drive_to_pin()
    chat.gateway.lost_responses = [gateway_requests.SendMoney]
    assert "won't be charged twice" in chat(PIN)
    assert chat.conversation.uncertain
    assert "Done!" in chat(PIN)
    assert len(chat.gateway.payments) == 1


def test_cancel_after_a_lost_response_warns_that_the_payment_may_have_succeeded():
    chat = drive_to_pin()
    chat.gateway.lost_responses = [gateway_requests.SendMoney]
    chat(PIN)
    assert "may have gone through" in chat("cancel")
    assert chat.conversation.operation is None


def test_internal_error_leaves_the_outcome_uncertain():
    chat = drive_to_pin()
    chat.gateway.overrides = {gateway_requests.SendMoney: [RequestRejected(code="INTERNAL_ERROR")]}
    assert "won't be charged twice" in chat(PIN)
    assert "Done!" in chat(PIN)


def test_unsent_request_does_not_leave_the_outcome_uncertain():
    chat = drive_to_pin()
    chat.gateway.overrides = {gateway_requests.SendMoney: [GatewayUnreachable(uncertain=False)]}
    assert "can't reach the payment service" in chat(PIN)
    assert not chat.conversation.uncertain
    assert "Done!" in chat(PIN)


def test_payment_after_a_decline_has_a_new_request_id():
    chat = drive_to_pin()
    chat.gateway.balance = 0
    assert "don't have enough money" in chat(PIN)
    first = chat.list_requests(gateway_requests.SendMoney)[0].request_id
    chat.gateway.balance = 1_000_00
    for word in ("send money", "AM-1001", "500", "yes", PIN):
        chat(word)
    expected = [
        PaymentRecord(
            chat.list_requests(gateway_requests.SendMoney)[1].request_id, "AM-1001", "500.00"
        )
    ]
    assert chat.gateway.payments == expected
    assert chat.gateway.payments[0].request_id != first


def test_blocked_payment_offers_neither_another_amount_nor_another_attempt():
    rejection = RequestRejected(code="COMPLIANCE_REJECTED")
    chat = drive_to_pin()
    chat.gateway.overrides = {gateway_requests.SendMoney: [rejection]}
    reply = chat(PIN)
    assert "We can't make this payment" in reply
    assert "Send money" not in reply
    chat = ConversationDriver()
    chat.gateway.overrides = {"wallet.create_quote": [rejection]}
    for word in ("send money", "AM-1001", "500"):
        reply = chat(word)
    assert "We can't make this payment" in reply
    assert "instead" not in reply


@each("word", ["yes", PIN])
def test_repeated_input_after_completion_does_not_pay_again(word):
    chat = drive_to_pin()
    chat(PIN)
    reply = chat(word)
    assert len(chat.gateway.payments) == 1
    assert chat.conversation.stage == "idle"
    assert "not waiting for a yes or no" in reply or "didn't ask" in reply


def test_late_yes_repeats_the_confirmation():
    for event in (build_text_message("yes", is_late=True), None):
        chat = drive_to_confirmation()
        if event is None:
            chat.choose_option("yes", late=True)
        else:
            chat(event)
        assert chat.conversation.stage == "confirm"
        assert "late" in chat.reply_text


def test_guessed_yes_repeats_the_confirmation():
    chat = drive_to_confirmation()
    chat(build_text_message("yeah why not", "yes"))
    assert chat.conversation.stage == "confirm"


def test_late_pin_is_not_used():
    chat = drive_to_pin()
    chat(build_text_message(PIN, is_late=True))
    assert chat.gateway.payments == []
    assert chat.conversation.is_awaiting_pin


def test_button_of_an_earlier_confirmation_has_expired():
    chat = drive_to_confirmation()
    old = chat.get_option_id("yes")
    chat("no")
    for word in ("send money", "AM-1001", "700"):
        chat(word)
    assert "expired" in chat(OptionChosen(id=old))
    assert chat.conversation.stage == "confirm"


def test_no_or_cancel_ends_the_payment():
    for word in ("no", "cancel"):
        chat = drive_to_confirmation()
        assert "canceled" in chat(word)
        assert chat.conversation.stage == "idle"


def test_withheld_text_is_requested_again():
    chat = drive_to_pin()
    reply = chat(TextMessage(text=None))
    assert "send it again" in reply
    assert chat.conversation.is_awaiting_pin


def test_another_command_cancels_the_payment():
    chat = drive_to_pin()
    reply = chat("balance")
    assert "canceled: *Send money*" in reply
    assert "1,000.00 SLE" in reply
    assert "didn't ask" in chat(PIN)
    assert chat.gateway.payments == []


def test_insufficient_funds_asks_for_a_smaller_amount():
    chat = ConversationDriver()
    chat("send money")
    chat("AM-1001")
    reply = chat("50000")
    assert "don't have enough money" in reply
    assert "instead" in reply
    assert chat("10").count("10.00 SLE")
    assert chat.conversation.stage == "confirm"


@each(
    "recipient, response",
    [
        ("TG-0001", "your own wallet"),
        ("XX-9999", "can't find a card"),
        ("+23276999999", "no wallet with that phone number"),
        ("who knows", "card number or phone number"),
    ],
)
def test_recipient_that_cannot_be_paid_is_rejected(recipient, response):
    chat = ConversationDriver()
    chat("send money")
    assert response in chat(recipient)
    assert chat.conversation.step == "to"
    chat("AM-1001")
    assert chat.conversation.step == "amount"


def test_recipient_without_a_card_is_paid_and_saved_by_phone_number():
    chat = ConversationDriver()
    chat("send money")
    assert "Foday B." in chat(CARDLESS_PHONE)
    assert f"Phone: {CARDLESS_PHONE}" in chat("5")
    chat("yes")
    chat(PIN)
    chat.choose_option("keep")
    assert [(p.card_serial, p.amount) for p in chat.gateway.payments] == [(CARDLESS_PHONE, "5.00")]
    assert [recipient.payee for recipient in chat.person.recipients] == [CARDLESS_PHONE]
    chat("send money")
    chat.choose_option(f"phone:{CARDLESS_PHONE}")
    assert chat.conversation.step == "amount"


def test_saved_recipients_are_unique_and_limited():
    chat = ConversationDriver()
    turn = Turn(chat.person, chat.conversation, chat.build_context())
    saved = [Recipient(name=f"N{n:02d} K.", payee=f"C-{n}") for n in range(MAX_RECIPIENTS)]
    renamed = Recipient(name="Mary L.", payee="C-0")
    for recipient in (*saved, renamed, AMINATA):
        turn.save_recipient(recipient)
    assert turn.person.recipients == (*saved[2:], renamed, AMINATA)


def test_recipient_is_saved_on_request():
    chat = drive_to_pin()
    chat(PIN)
    chat.choose_option("keep")
    assert chat.person.recipients == (AMINATA,)
    assert "*send 50 to Aminata*" in chat.reply_text
    chat("send money")
    chat.choose_option("card:AM-1001")
    assert chat.conversation.step == "amount"


def test_saved_recipient_is_chosen_by_number_or_name():
    for name in ("1", "aminata"):
        chat = ConversationDriver()
        chat.person = save_recipient(chat)
        chat("send money")
        chat(name)
        assert chat.conversation.step == "amount"
        for word in ("5", "yes", PIN):
            chat(word)
        assert "Save contact" not in chat.reply_text


def test_saved_recipient_with_an_unknown_card_is_removed():
    chat = ConversationDriver()
    chat.person = save_recipient(chat, Recipient(name="Old C.", payee="GONE-1"))
    chat("send money")
    assert "no longer in use" in chat("1")
    assert chat.person.recipients == ()


def save_recipient(chat: ConversationDriver, recipient: Recipient = AMINATA):
    return msgspec.structs.replace(chat.person, recipients=(recipient,))


def test_receipt_states_that_the_payment_is_under_review():
    chat = drive_to_pin()
    receipt = build_receipt(
        transaction_id="txn_9",
        status="under_review",
        amount="500.00 SLE",
        fee_amount="7.50 SLE",
        sender_new_balance="492.50 SLE",
    )
    chat.gateway.overrides = {gateway_requests.SendMoney: [RequestSucceeded(result=receipt)]}
    assert "under review" in chat(PIN)
    assert {option.id for option in chat.last_offer.options} == {"cmd:history", "cmd:menu"}


@each("language, words", [("en", "can't make this payment"), ("fr", "effectuer ce paiement")])
@each("is_saved", [False, True])
def test_payment_rejected_by_compliance_is_not_offered_again(language, words, is_saved):
    for request in ("wallet.create_quote", gateway_requests.SendMoney):
        chat = ConversationDriver(language)
        if is_saved:
            chat.person = save_recipient(chat)
        outcome = RequestRejected(code="COMPLIANCE_REJECTED")
        if request == "wallet.create_quote":
            quote = chat.gateway.build_quote(500)
            reasons = ["DAILY_LIMIT_EXCEEDED", "COMPLIANCE_REJECTED"]
            outcome = RequestSucceeded(
                result=msgspec.structs.replace(quote, allowed=False, reasons=reasons)
            )
        chat.gateway.overrides = {request: [outcome]}
        send, yes = ("send 5 to", "yes") if language == "en" else ("envoyer 5 à", "oui")
        reply = chat(f"{send} {AMINATA.payee}")
        if request is gateway_requests.SendMoney:
            chat(yes)
            reply = chat(PIN)
        assert words in reply
        assert "limit" not in reply
        assert "plafond" not in reply
        assert chat.conversation.stage == "idle"
        assert "cmd:send" not in {option.id for option in chat.last_offer.options}


def test_blocked_recipient_is_reported():
    chat = drive_to_pin()
    error = RequestRejected(code="SUBSCRIBER_BLOCKED", details={"party": "receiver"})
    chat.gateway.overrides = {gateway_requests.SendMoney: [error]}
    assert "The recipient can't" in chat(PIN)


def test_guessed_command_does_not_replace_an_open_question():
    chat = ConversationDriver()
    chat("send money")
    chat(build_text_message("what have I got", "balance"))
    assert chat.conversation.command == "send"
    chat("balance")
    assert chat.conversation.command is None


@each(
    "code, response",
    [
        ("CARD_NOT_FOUND", "can't find a card"),
        ("SUBSCRIBER_NOT_FOUND", "can't find a card"),
        ("CARD_NOT_ACTIVE", "The recipient can't"),
        ("VALIDATION_FAILED", "The recipient can't"),
    ],
)
def test_recipient_rejected_by_the_gateway_is_requested_again(code, response):
    chat = ConversationDriver()
    chat("send money")
    chat.gateway.overrides = {gateway_requests.FindPayeeByCard: [RequestRejected(code=code)]}
    assert response in chat("AM-1001")
    assert chat.conversation.step == "to"


def test_amount_rejected_by_the_quote_is_requested_again():
    chat = ConversationDriver()
    chat("send money")
    chat("AM-1001")
    error = RequestRejected(code="DAILY_LIMIT_EXCEEDED")
    chat.gateway.overrides = {"wallet.create_quote": [error]}
    assert "instead" in chat("500")
    assert chat.conversation.step == "amount"


def test_recipient_in_place_of_the_amount_replaces_the_recipient():
    chat = ConversationDriver()
    chat("send money")
    chat("AM-1001")
    chat("500 to AM-1002")
    assert chat.conversation.stage == "confirm"
    assert "AM-1002" in chat.reply_text


def test_international_number_without_plus_is_a_recipient():
    chat = ConversationDriver()
    chat("send money")
    chat(PAYEE_PHONE.removeprefix("+"))
    assert chat.list_requests(gateway_requests.FindPayeeByPhone)[0].phone == PAYEE_PHONE


def test_duplicate_request_leaves_the_outcome_uncertain():
    chat = drive_to_pin()
    error = RequestRejected(code="DUPLICATE_REQUEST")
    chat.gateway.overrides = {gateway_requests.SendMoney: [error]}
    assert "may have" in chat(PIN)
