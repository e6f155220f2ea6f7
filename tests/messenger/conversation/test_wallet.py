"""Balance, history, statement, limits, cards, documents, registration and PIN changes."""

import msgspec

from builders.conversation import (
    CODE,
    PHONE,
    PIN,
    WRONG_PIN,
    ConversationDriver,
    build_balance,
    build_text_message,
)
from cases import each
from tapgate.messenger import card_requests, gateway_requests
from tapgate.messenger.model import (
    DocumentReply,
    GatewayUnreachable,
    ImageRejected,
    Person,
    PinRequest,
    RequestRejected,
    RequestSucceeded,
)

NEW_PIN = "7352"


def test_balance_is_shown_in_both_languages():
    assert "Your balance is *1,000.00 SLE*" in ConversationDriver()("balance")
    assert "Votre solde est de *1\xa0000,00\xa0SLE*" in ConversationDriver("fr")("solde")


def test_balance_shows_held_and_available_funds():
    chat = ConversationDriver()
    balance = build_balance(balance="1000.00", available="900.00", held="100.00")
    chat.gateway.overrides = {"wallet.get_balance": [RequestSucceeded(result=balance)]}
    reply = chat("balance")
    for part in ("900.00 SLE", "1,000.00 SLE", "100.00 SLE"):
        assert part in reply


@each(
    "language, received, sent",
    [
        (
            "en",
            "+ 1,234.50 SLE · Transfer · 14 Mar 2026, 09:30 · under review",
            "− 1,234.50 SLE · fee 18.52 SLE · Aminata K. · 13 Mar 2026, 09:30",
        ),
        (
            "fr",
            "+ 1\xa0234,50\xa0SLE · Transfert · 14 mars 2026, 09:30 · en cours de vérification",
            "− 1\xa0234,50\xa0SLE · frais 18,52\xa0SLE · Aminata K. · 13 mars 2026, 09:30",
        ),
    ],
)
def test_history_lists_recent_transactions(language, received, sent):
    lines = ConversationDriver(language)("history").splitlines()
    assert lines[1:3] == [received, sent]


def test_empty_history_is_reported():
    chat = ConversationDriver()
    chat.gateway.overrides = {gateway_requests.ListTransactions: [RequestSucceeded(result=[])]}
    assert "no transactions yet" in chat("history")


@each(
    "choice, first, last",
    [
        ("this_month", "2026-03-01", "2026-03-14"),
        ("last_month", "2026-02-01", "2026-02-28"),
        ("last_90", "2025-12-15", "2026-03-14"),
    ],
)
def test_statement_is_sent_as_a_document(choice, first, last):
    chat = ConversationDriver()
    chat("statement")
    chat.choose_option(choice)
    period = chat.list_requests("wallet.create_statement")[0].fields
    assert (period["from_date"], period["to_date"]) == (first, last)
    (file,) = chat.replies
    assert isinstance(file, DocumentReply)
    assert file.filename == f"statement-{first}-{last}.pdf"


def test_statement_is_sent_as_a_link_without_document_support():
    chat = ConversationDriver(can_send_documents=False)
    chat("statement")
    reply = chat("1")
    assert "https://x.test/s" in reply
    assert "15 Mar 2026, 09:30" in reply


def test_statement_period_can_be_given_in_words():
    chat = ConversationDriver()
    chat("statement")
    assert "didn't understand that period" in chat("some day")
    chat("last 10 days")
    assert chat.list_requests("wallet.create_statement")[0].fields["from_date"] == "2026-03-05"
    chat(build_text_message("last 5 days", "statement"))
    assert chat.list_requests("wallet.create_statement")[1].fields["from_date"] == "2026-03-10"


def test_limits_suggest_verification_below_the_top_kyc_level():
    reply = ConversationDriver()("limits")
    assert "5,000.00 SLE" in reply
    assert "Verify your identity" in reply
    chat = ConversationDriver("fr")
    chat.gateway.subscriber = msgspec.structs.replace(chat.gateway.subscriber, kyc_level=3)
    assert "Vérifiez votre identité" not in chat("plafonds")


def test_cards_are_listed_with_status_and_holder():
    reply = ConversationDriver()("cards")
    assert "TG-0001 · active" in reply
    assert "TG-0002 · blocked, child card, Ibrahim" in reply
    chat = ConversationDriver("fr")
    chat.gateway.cards = []
    assert "pas encore de carte" in chat("cartes")


@each("language, done", [("en", "AB-123456 is linked"), ("fr", "AB-123456 est associée")])
def test_linking_a_card_requires_the_pin(language, done):
    chat = ConversationDriver(language)
    chat(build_text_message("link", "link"))
    assert chat("??")
    chat("AB-123456")
    assert chat.conversation.is_awaiting_pin
    assert done in chat(PIN)


def test_card_that_is_already_linked_is_rejected():
    chat = ConversationDriver()
    chat.gateway.overrides = {"cards.link": [RequestRejected(code="CARD_ALREADY_LINKED")]}
    chat(build_text_message("link card AB-123456", "link"))
    assert "already linked" in chat(PIN)
    assert chat.conversation.stage == "idle"


TAP_URL = "https://pin.example/t?picc_data=EF963FF7828658A599F3041510671E88&cmac=94EED9EE65337086"


@each("text", [TAP_URL, f"Link my card: {TAP_URL}", f"Associer ma carte : {TAP_URL}"])
def test_pasted_link_of_a_tapped_card_links_the_card_at_any_time(text):
    for opening in ((), ("link",), ("send money",), ("link", "AB-123456")):
        chat = ConversationDriver()
        for earlier in opening:
            chat(earlier)
        chat(text)
        assert chat.conversation.is_awaiting_pin
        chat(PIN)
        request = chat.gateway.requests[-1]
        assert request.operation == "cards.link"
        assert (request.fields["card_serial"], request.fields["card_proof"]) == (None, TAP_URL)


@each("language, words", [("en", "already used"), ("fr", "déjà servi")])
def test_rejected_tap_is_explained_and_another_one_can_be_pasted(language, words):
    chat = ConversationDriver(language)
    chat.gateway.overrides = {"cards.link": [RequestRejected(code="CARD_PROOF_USED")]}
    chat(TAP_URL)
    assert words in chat(PIN)
    assert chat.conversation.command == "link" and "tap_url" not in chat.conversation.facts
    chat(TAP_URL)
    assert chat.conversation.is_awaiting_pin


@each(
    "reason, is_permanent, status", [("lost", True, "LOST"), ("customer_request", False, "BLOCKED")]
)
def test_blocking_a_card_requires_confirmation(reason, is_permanent, status):
    chat = ConversationDriver()
    chat(build_text_message("block", "block"))
    chat.choose_option("TG-0001")
    assert chat.choose_option(reason).count("permanently") == is_permanent
    assert chat.gateway.cards[0].status == "ACTIVE"
    assert "is blocked" in chat("yes")
    assert chat.gateway.cards[0].status == status


def test_blocking_the_only_card_skips_the_card_question():
    chat = ConversationDriver("fr")
    chat.gateway.cards = chat.gateway.cards[:1]
    assert "Pourquoi souhaitez-vous bloquer" in chat(build_text_message("bloquer", "block"))
    chat("2")
    assert "définitivement" in chat.reply_text
    chat("non")
    assert chat.gateway.cards[0].status == "ACTIVE"


def test_blocking_without_a_response_can_be_retried():
    chat = ConversationDriver()
    chat(build_text_message("block", "block"))
    chat("TG-0001")
    chat("4")
    chat.gateway.overrides = {card_requests.BlockCard: [GatewayUnreachable(uncertain=True)]}
    assert "try again" in chat("yes").lower()
    assert "is blocked" in chat.choose_option("again")


def test_unblocking_a_card_requires_the_pin():
    chat = ConversationDriver()
    chat(build_text_message("unblock", "unblock"))
    assert "TG-0002" in chat.reply_text
    assert "You have 2 tries left" in chat(WRONG_PIN)
    assert "is active again" in chat(PIN)
    assert "no cards to unblock" in chat(build_text_message("unblock", "unblock"))


@each("language, done", [("en", "has been changed"), ("fr", "a été changé")])
def test_pin_can_be_changed_as_text(language, done):
    chat = ConversationDriver(language)
    chat(build_text_message("change pin", "change_pin"))
    chat(PIN)
    assert chat.conversation.is_awaiting_pin
    assert done in chat(f"{PIN} {NEW_PIN}")
    assert chat.gateway.pin == NEW_PIN


def test_pin_can_be_changed_in_a_form():
    chat = ConversationDriver(pin_entry_mode="form")
    chat(build_text_message("change pin", "change_pin"))
    assert isinstance(chat.replies[-1], PinRequest)
    assert chat.replies[-1].form == "change_pin"
    assert "exactly 4 digits" in chat.submit_pin_form(PIN, None)
    assert "has been changed" in chat.submit_pin_form(PIN, NEW_PIN)


def test_rejected_new_pin_can_be_entered_again():
    chat = ConversationDriver()
    weak = RequestRejected(code="INVALID_REQUEST", details={"fields": {"new_pin": "is too easy"}})
    chat.gateway.overrides = {"subscribers.change_pin": [RequestRejected(code="SAME_PIN"), weak]}
    chat(build_text_message("change pin", "change_pin"))
    assert "must be different" in chat(f"{PIN} {PIN}")
    assert "too easy" in chat(f"{PIN} 1234")
    assert "has been changed" in chat(f"{PIN} {NEW_PIN}")


def test_pin_change_without_a_response_is_reported_as_uncertain():
    chat = ConversationDriver()
    chat.gateway.lost_responses = ["subscribers.change_pin"]
    chat(build_text_message("change pin", "change_pin"))
    assert "may already be changed" in chat(f"{PIN} {NEW_PIN}")
    assert not chat.conversation.uncertain


@each(
    "language, yes, welcome",
    [("en", "yes", "Welcome, Aminata"), ("fr", "oui", "Bienvenue, Aminata")],
)
def test_registration_step_by_step_creates_the_subscriber(language, yes, welcome):
    chat = ConversationDriver(language)
    chat.gateway.subscriber = None
    chat("register")
    chat("Aminata")
    assert chat.conversation.step == "names"
    text = chat("Aminata Kamara")
    assert "Aminata Kamara" in text
    assert PHONE in text
    chat(yes)
    assert chat.conversation.is_awaiting_pin
    chat(PIN)
    assert not chat.list_requests("subscribers.register")
    assert PIN not in str(chat.conversation.facts)
    assert welcome in chat(PIN)
    (registered,) = chat.list_requests("subscribers.register")
    assert registered.fields == {
        "phone_number": PHONE,
        "first_name": "Aminata",
        "last_name": "Kamara",
        "pin": PIN,
        "language": language,
    }


def test_registration_with_the_pin_form_succeeds():
    for entered in ((None, PIN), (PIN, None), (PIN, PIN)):
        chat = ConversationDriver(pin_entry_mode="form")
        chat.gateway.subscriber = None
        for word in ("register", "Aminata Kamara", "yes"):
            chat(word)
        assert chat.replies[-1].form == "new_pin"
        assert "Welcome" in chat.submit_pin_form(*entered)


def test_existing_subscriber_cannot_register_again():
    assert "already has a wallet" in ConversationDriver()("register")
    chat = ConversationDriver()
    chat.gateway.subscriber = None
    chat.gateway.overrides = {"subscribers.register": [RequestRejected(code="DUPLICATE_PHONE")]}
    for word in ("register", "Aminata Kamara", "yes"):
        chat(word)
    chat(PIN)
    assert "already has a wallet" in chat(PIN)


@each("pin_again", ["4908", WRONG_PIN])
def test_registration_starts_the_pin_again_if_the_entries_differ(pin_again):
    chat = ConversationDriver()
    chat.gateway.subscriber = None
    for word in ("register", "Aminata Kamara", "yes"):
        chat(word)
    assert "again to confirm" in chat(PIN)
    assert "don't match" in chat(pin_again)
    assert "again to confirm" in chat(PIN)
    assert "Welcome" in chat(PIN)
    (registered,) = chat.list_requests("subscribers.register")
    assert registered.fields["pin"] == PIN


def test_rejected_registration_field_can_be_entered_again():
    chat = ConversationDriver()
    chat.gateway.subscriber = None
    chat.gateway.overrides = {
        "subscribers.register": [
            RequestRejected(code="VALIDATION_FAILED", details={"fields": {"pin": "is too easy"}}),
            RequestRejected(code="VALIDATION_FAILED", details={"fields": {"first_name": "is odd"}}),
        ]
    }
    for word in ("register", "Aminata Kamara", "yes"):
        chat(word)
    chat("1234")
    assert "too easy" in chat("1234")
    chat(PIN)
    assert "first and last name" in chat(PIN)
    for word in ("Mary Kamara", "yes", PIN, PIN):
        chat(word)
    assert chat.gateway.subscriber.first_name == "Mary"


@each("language, next_question", [("en", "is next"), ("fr", "document suivant")])
def test_documents_are_submitted_one_by_one(language, next_question):
    chat = ConversationDriver(language)
    chat("kyc")
    chat.choose_option("id_front")
    assert next_question in chat.send_image()
    assert "id_front" not in {option.id.partition("#")[0] for option in chat.last_offer.options}
    chat.choose_option("selfie")
    chat.send_image()
    chat.choose_option("enough")
    assert chat.conversation.stage == "idle"
    sent = [
        request.fields["document_type"]
        for request in chat.list_requests("subscribers.add_kyc_document")
    ]
    assert sent == ["id_front", "selfie"]


def test_submitting_all_documents_ends_the_command():
    chat = ConversationDriver()
    chat("kyc")
    for document in ("id_front", "id_back", "selfie", "proof_of_address"):
        chat.choose_option(document)
        chat.send_image()
    assert chat.conversation.stage == "idle"
    assert "We'll check" in chat.reply_text


def test_declining_further_documents_completes_the_command():
    chat = ConversationDriver()
    chat("kyc")
    chat.choose_option("id_front")
    chat.send_image()
    assert "canceled" not in chat("no")
    assert "We'll check" in chat.reply_text


def test_unsolicited_image_starts_document_submission():
    chat = ConversationDriver()
    assert "What does it show?" in chat.send_image()
    assert chat.conversation.command == "kyc"
    assert "2 photos" in chat.send_image()
    assert "other photo" in chat.choose_option("selfie")
    assert "deleted" in chat.choose_option("discard")
    sent = [item.document_type for item in chat.list_requests(gateway_requests.AddKeptDocument)]
    assert sent == ["selfie", None]
    chat("kyc")
    chat.choose_option("selfie")
    assert "waiting for a photo" in chat("here it comes")
    assert chat(ImageRejected(reason="is damaged"))


def test_image_during_another_command_is_kept():
    chat = ConversationDriver()
    chat("send money")
    assert "I'll keep your photo" in chat.send_image()
    assert chat.conversation.step == "to"
    assert "I still have your photo" in chat("cancel")
    assert "What does it show?" in chat("kyc")


@each("texts, reply", [((), "deleted that photo"), (("menu", "kyc"), "deleted that photo")])
def test_canceled_document_submission_deletes_the_kept_image(texts, reply):
    chat = ConversationDriver()
    chat.send_image()
    for text in texts:
        chat(text)
    assert chat.gateway.kept_images == 1
    assert reply in chat("cancel")
    assert chat.gateway.kept_images == 0
    assert "Which document" in chat("kyc")


def test_canceled_document_submission_deletes_all_kept_images_and_keeps_uploaded_ones():
    chat = ConversationDriver()
    for _ in range(3):
        chat.send_image()
    chat.choose_option("selfie")
    assert "deleted those photos" in chat("cancel")
    assert "We'll check" in chat.reply_text
    assert chat.gateway.kept_images == 0


def test_number_of_kept_images_is_limited():
    chat = ConversationDriver()
    for _ in range(5):
        chat.send_image()
    assert "already have 4 photos" in chat.reply_text
    assert chat.gateway.kept_images == 4


def test_failed_document_upload_can_be_retried():
    chat = ConversationDriver()
    chat.gateway.overrides = {
        "subscribers.add_kyc_document": [
            RequestRejected(code="VALIDATION_FAILED"),
            GatewayUnreachable(uncertain=True),
        ]
    }
    chat("kyc")
    chat.choose_option("selfie")
    assert "send it again" in chat.send_image()
    assert "try again" in chat.send_image()
    assert "is next" in chat.send_image()


def build_hidden_number_driver(language: str = "en") -> ConversationDriver:
    chat = ConversationDriver(language)
    chat.person = Person(address="user:U1", phone=None, language=language)
    return chat


@each(
    "language, confirmed, balance",
    [
        ("en", "is confirmed", "1,000.00 SLE"),
        ("fr", "est confirmé", "1\xa0000,00\xa0SLE"),
    ],
)
def test_hidden_number_is_verified_with_a_one_time_code(language, confirmed, balance):
    chat = build_hidden_number_driver(language)
    chat("balance")
    assert chat.conversation.step == "phone"
    chat("what?")
    chat(PHONE)
    assert chat.list_requests(gateway_requests.SendOneTimeCode)[0].phone == PHONE
    chat("111111")
    assert chat.person.phone is None
    reply = chat(CODE)
    assert confirmed in reply
    assert balance in reply
    assert chat.person.phone == PHONE


def test_rejected_one_time_code_returns_to_the_phone_question():
    chat = build_hidden_number_driver()
    chat.gateway.overrides = {
        gateway_requests.VerifyOneTimeCode: [RequestRejected(code="INVALID_OTP")]
    }
    chat("balance")
    chat(PHONE)
    assert "start again" in chat("111111")
    assert chat.conversation.step == "phone"


def test_new_code_can_be_requested_and_another_number_entered():
    chat = build_hidden_number_driver()
    chat("balance")
    chat(PHONE)
    chat.choose_option("code")
    assert len(chat.list_requests(gateway_requests.SendOneTimeCode)) == 2
    chat.choose_option("phone")
    assert chat.conversation.step == "phone"


def test_one_time_code_is_not_stored_in_the_conversation():
    chat = build_hidden_number_driver()
    chat.gateway.overrides = {
        gateway_requests.VerifyOneTimeCode: [GatewayUnreachable(uncertain=False)]
    }
    chat("balance")
    chat(PHONE)
    chat(CODE)
    for output in chat.outputs:
        assert CODE not in msgspec.json.encode(output.conversation).decode()
    assert "1,000.00 SLE" in chat(CODE)
