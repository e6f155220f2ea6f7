"""Balance, history, statement, limits, cards, documents, registration and PIN changes."""

import msgspec
import pytest

from messenger.conversation.builders import (
    CODE,
    PHONE,
    PIN,
    WRONG_PIN,
    ConversationDriver,
    build_text_message,
)
from tapgate.messenger.model import gateway_requests
from tapgate.messenger.model.events import (
    GatewayUnreachable,
    ImageRejected,
    RequestRejected,
    RequestSucceeded,
)
from tapgate.messenger.model.people import Person, SetVerifiedPhone
from tapgate.messenger.model.replies import DocumentReply, PinRequest

NEW_PIN = "7352"


def test_balance_is_shown_in_both_languages():
    assert "Your balance is *1,000.00 SLE*" in ConversationDriver()("balance")
    assert "Votre solde est de *1,000.00 SLE*" in ConversationDriver("fr")("solde")


def test_balance_shows_held_and_available_funds():
    story = ConversationDriver()
    read = gateway_requests.Balance(
        balance="1000.00", available="900.00", held="100.00", currency="SLE"
    )
    story.gateway.overrides = {gateway_requests.GetBalance: [RequestSucceeded(result=read)]}
    answer = story("balance")
    for part in ("900.00 SLE", "1,000.00 SLE", "100.00 SLE"):
        assert part in answer


@pytest.mark.parametrize(
    ("language", "kind", "review", "day"),
    [
        ("en", "Transfer", "under review", "14 Mar 2026, 09:30"),
        ("fr", "Transfert", "en cours de vérification", "14 mars 2026, 09:30"),
    ],
)
def test_history_lists_recent_transactions(language, kind, review, day):
    lines = ConversationDriver(language)("history").splitlines()
    assert lines[1] == f"+ 1,234.50 SLE · {kind} · {day} · {review}"
    assert lines[2].startswith("− 1,234.50 SLE · Aminata K. · 13")


def test_empty_history_is_reported():
    story = ConversationDriver()
    story.gateway.overrides = {gateway_requests.ListTransactions: [RequestSucceeded(result=[])]}
    assert "no transactions yet" in story("history")


@pytest.mark.parametrize(
    ("choice", "first", "last"),
    [
        ("this_month", "2026-03-01", "2026-03-14"),
        ("last_month", "2026-02-01", "2026-02-28"),
        ("last_90", "2025-12-15", "2026-03-14"),
    ],
)
def test_statement_is_sent_as_a_document(choice, first, last):
    story = ConversationDriver()
    story("statement")
    story.choose_option(choice)
    made = story.list_calls(gateway_requests.CreateStatement)[0]
    assert (made.from_date, made.to_date) == (first, last)
    (file,) = story.replies
    assert isinstance(file, DocumentReply)
    assert file.filename == f"statement-{first}-{last}.pdf"


def test_statement_is_sent_as_a_link_without_document_support():
    story = ConversationDriver(can_send_documents=False)
    story("statement")
    answer = story("1")
    assert "https://x.test/s" in answer
    assert "15 Mar 2026, 09:30" in answer


def test_statement_period_can_be_given_in_words():
    story = ConversationDriver()
    story("statement")
    assert "didn't understand that period" in story("some day")
    story("last 10 days")
    assert story.list_calls(gateway_requests.CreateStatement)[0].from_date == "2026-03-05"
    story(build_text_message("last 5 days", "statement"))
    assert story.list_calls(gateway_requests.CreateStatement)[1].from_date == "2026-03-10"


def test_limits_suggest_verification_below_the_top_kyc_level():
    answer = ConversationDriver()("limits")
    assert "5,000.00 SLE" in answer
    assert "Verify your identity" in answer
    story = ConversationDriver("fr")
    story.gateway.subscriber = msgspec.structs.replace(story.gateway.subscriber, kyc_level=3)
    assert "Vérifiez votre identité" not in story("plafonds")


def test_cards_are_listed_with_status_and_holder():
    answer = ConversationDriver()("cards")
    assert "TG-0001 · active" in answer
    assert "TG-0002 · blocked, child card, Ibrahim" in answer
    story = ConversationDriver("fr")
    story.gateway.cards = []
    assert "pas encore de carte" in story("cartes")


@pytest.mark.parametrize(
    ("language", "done"), [("en", "AB-123456 is linked"), ("fr", "AB-123456 est associée")]
)
def test_linking_a_card_requires_the_pin(language, done):
    story = ConversationDriver(language)
    story(build_text_message("link", "link"))
    assert story("??")
    story("AB-123456")
    assert story.conversation.is_awaiting_pin
    assert done in story(PIN)


def test_card_that_is_already_linked_is_rejected():
    story = ConversationDriver()
    story.gateway.overrides = {
        gateway_requests.LinkCard: [RequestRejected(code="CARD_ALREADY_LINKED")]
    }
    story(build_text_message("link card AB-123456", "link"))
    assert "already linked" in story(PIN)
    assert story.conversation.stage == "idle"


@pytest.mark.parametrize(
    ("reason", "final", "status"),
    [("lost", True, "LOST"), ("customer_request", False, "BLOCKED")],
)
def test_blocking_a_card_requires_confirmation(reason, final, status):
    story = ConversationDriver()
    story(build_text_message("block", "block"))
    story.choose_option("TG-0001")
    assert story.choose_option(reason).count("permanently") == final
    assert story.gateway.cards[0].status == "ACTIVE"
    assert "is blocked" in story("yes")
    assert story.gateway.cards[0].status == status


def test_blocking_the_only_card_skips_the_card_question():
    story = ConversationDriver("fr")
    story.gateway.cards = story.gateway.cards[:1]
    assert "Pourquoi souhaitez-vous bloquer" in story(build_text_message("bloquer", "block"))
    story("2")
    assert "définitivement" in story.reply_text
    story("non")
    assert story.gateway.cards[0].status == "ACTIVE"


def test_blocking_without_a_response_can_be_retried():
    story = ConversationDriver()
    story(build_text_message("block", "block"))
    story("TG-0001")
    story("4")
    story.gateway.overrides = {gateway_requests.BlockCard: [GatewayUnreachable(uncertain=True)]}
    assert "try again" in story("yes").lower()
    assert "is blocked" in story.choose_option("again")


def test_unblocking_a_card_requires_the_pin():
    story = ConversationDriver()
    story(build_text_message("unblock", "unblock"))
    assert "TG-0002" in story.reply_text
    assert "You have 2 tries left" in story(WRONG_PIN)
    assert "is active again" in story(PIN)
    assert "no cards to unblock" in story(build_text_message("unblock", "unblock"))


@pytest.mark.parametrize(("language", "done"), [("en", "has been changed"), ("fr", "a été changé")])
def test_pin_can_be_changed_as_text(language, done):
    story = ConversationDriver(language)
    story(build_text_message("change pin", "change_pin"))
    story(PIN)
    assert story.conversation.is_awaiting_pin
    assert done in story(f"{PIN} {NEW_PIN}")
    assert story.gateway.pin == NEW_PIN


def test_pin_can_be_changed_in_a_form():
    story = ConversationDriver(pin_entry_mode="form")
    story(build_text_message("change pin", "change_pin"))
    assert isinstance(story.replies[-1], PinRequest)
    assert story.replies[-1].form == "change_pin"
    assert "exactly 4 digits" in story.submit_pin_form(PIN, None)
    assert "has been changed" in story.submit_pin_form(PIN, NEW_PIN)


def test_rejected_new_pin_can_be_entered_again():
    story = ConversationDriver()
    weak = RequestRejected(code="INVALID_REQUEST", details={"fields": {"new_pin": "is too easy"}})
    story.gateway.overrides = {gateway_requests.ChangePin: [RequestRejected(code="SAME_PIN"), weak]}
    story(build_text_message("change pin", "change_pin"))
    assert "must be different" in story(f"{PIN} {PIN}")
    assert "too easy" in story(f"{PIN} 1234")
    assert "has been changed" in story(f"{PIN} {NEW_PIN}")


def test_pin_change_without_a_response_is_reported_as_uncertain():
    story = ConversationDriver()
    story.gateway.lost_responses = [gateway_requests.ChangePin]
    story(build_text_message("change pin", "change_pin"))
    assert "may already be changed" in story(f"{PIN} {NEW_PIN}")
    assert not story.conversation.uncertain


@pytest.mark.parametrize(
    ("language", "yes", "welcome"),
    [("en", "yes", "Welcome, Aminata"), ("fr", "oui", "Bienvenue, Aminata")],
)
def test_registration_step_by_step_creates_the_subscriber(language, yes, welcome):
    story = ConversationDriver(language)
    story.gateway.subscriber = None
    story("register")
    story("Aminata")
    assert story.conversation.piece == "names"
    shown = story("Aminata Kamara")
    assert "Aminata Kamara" in shown
    assert PHONE in shown
    story(yes)
    assert story.conversation.is_awaiting_pin
    assert welcome in story(PIN)
    (registered,) = story.list_calls(gateway_requests.RegisterSubscriber)
    assert (registered.phone, registered.last_name) == (PHONE, "Kamara")


def test_registration_with_the_pin_form_succeeds():
    for entered in ((None, PIN), (PIN, None), (PIN, PIN)):
        story = ConversationDriver(pin_entry_mode="form")
        story.gateway.subscriber = None
        for word in ("register", "Aminata Kamara", "yes"):
            story(word)
        assert story.replies[-1].form == "new_pin"
        assert "Welcome" in story.submit_pin_form(*entered)


def test_existing_subscriber_cannot_register_again():
    assert "already has a wallet" in ConversationDriver()("register")
    story = ConversationDriver()
    story.gateway.subscriber = None
    story.gateway.overrides = {
        gateway_requests.RegisterSubscriber: [RequestRejected(code="DUPLICATE_PHONE")]
    }
    for word in ("register", "Aminata Kamara", "yes"):
        story(word)
    assert "already has a wallet" in story(PIN)


def test_rejected_registration_field_can_be_entered_again():
    story = ConversationDriver()
    story.gateway.subscriber = None
    story.gateway.overrides = {
        gateway_requests.RegisterSubscriber: [
            RequestRejected(code="VALIDATION_FAILED", details={"fields": {"pin": "is too easy"}}),
            RequestRejected(code="VALIDATION_FAILED", details={"fields": {"first_name": "is odd"}}),
        ]
    }
    for word in ("register", "Aminata Kamara", "yes"):
        story(word)
    assert "too easy" in story("1234")
    assert "first and last name" in story(PIN)
    for word in ("Mary Kamara", "yes", PIN):
        story(word)
    assert story.gateway.subscriber.first_name == "Mary"


@pytest.mark.parametrize(("language", "next_one"), [("en", "is next"), ("fr", "document suivant")])
def test_documents_are_submitted_one_by_one(language, next_one):
    story = ConversationDriver(language)
    story("kyc")
    story.choose_option("id_front")
    assert next_one in story.send_image()
    assert "id_front" not in {option.id.partition("#")[0] for option in story.last_offer.options}
    story.choose_option("selfie")
    story.send_image()
    story.choose_option("enough")
    assert story.conversation.stage == "idle"
    sent = [call.document_type for call in story.list_calls(gateway_requests.AddDocument)]
    assert sent == ["id_front", "selfie"]


def test_submitting_all_documents_ends_the_command():
    story = ConversationDriver()
    story("kyc")
    for document in ("id_front", "id_back", "selfie", "proof_of_address"):
        story.choose_option(document)
        story.send_image()
    assert story.conversation.stage == "idle"
    assert "We'll check" in story.reply_text


def test_declining_further_documents_completes_the_command():
    story = ConversationDriver()
    story("kyc")
    story.choose_option("id_front")
    story.send_image()
    assert "canceled" not in story("no")
    assert "We'll check" in story.reply_text


def test_unsolicited_image_starts_document_submission():
    story = ConversationDriver()
    assert "what it shows" in story.send_image()
    assert story.conversation.command == "kyc"
    assert "what it shows" in story.send_image()
    story.choose_option("selfie")
    assert "waiting for a photo" in story("here it comes")
    assert story(ImageRejected(reason="is damaged"))
    story.send_image()
    assert len(story.list_calls(gateway_requests.AddDocument)) == 1


def test_image_during_another_command_is_rejected():
    story = ConversationDriver()
    story("send money")
    assert "can't use a photo for this" in story.send_image()
    assert story.conversation.piece == "to"


def test_failed_document_upload_can_be_retried():
    story = ConversationDriver()
    story.gateway.overrides = {
        gateway_requests.AddDocument: [
            RequestRejected(code="VALIDATION_FAILED"),
            GatewayUnreachable(uncertain=True),
        ]
    }
    story("kyc")
    story.choose_option("selfie")
    assert "send it again" in story.send_image()
    assert "try again" in story.send_image()
    assert "is next" in story.send_image()


def build_hidden_number_driver(language: str = "en") -> ConversationDriver:
    story = ConversationDriver(language)
    story.person = Person(address="user:U1", phone=None, language=language)
    return story


@pytest.mark.parametrize(
    ("language", "confirmed"), [("en", "is confirmed"), ("fr", "est confirmé")]
)
def test_hidden_number_is_verified_with_a_one_time_code(language, confirmed):
    story = build_hidden_number_driver(language)
    story("balance")
    assert story.conversation.piece == "phone"
    story("what?")
    story(PHONE)
    assert story.list_calls(gateway_requests.SendOneTimeCode)[0].phone == PHONE
    story("111111")
    assert story.effects == []
    answer = story(CODE)
    assert confirmed in answer
    assert "1,000.00 SLE" in answer
    assert SetVerifiedPhone(phone=PHONE) in story.effects
    assert story.person.phone == PHONE


def test_rejected_one_time_code_returns_to_the_phone_question():
    story = build_hidden_number_driver()
    story.gateway.overrides = {
        gateway_requests.VerifyOneTimeCode: [RequestRejected(code="INVALID_OTP")]
    }
    story("balance")
    story(PHONE)
    assert "start again" in story("111111")
    assert story.conversation.piece == "phone"


def test_new_code_or_other_number_can_be_requested():
    story = build_hidden_number_driver()
    story("balance")
    story(PHONE)
    story.choose_option("code")
    assert len(story.list_calls(gateway_requests.SendOneTimeCode)) == 2
    story.choose_option("phone")
    assert story.conversation.piece == "phone"


def test_one_time_code_is_never_stored():
    story = build_hidden_number_driver()
    story.gateway.overrides = {
        gateway_requests.VerifyOneTimeCode: [GatewayUnreachable(uncertain=False)]
    }
    story("balance")
    story(PHONE)
    story(CODE)
    for step in story.steps:
        assert CODE not in msgspec.json.encode(step.conversation).decode()
    assert "1,000.00 SLE" in story(CODE)
