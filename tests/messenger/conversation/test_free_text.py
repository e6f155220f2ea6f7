"""Free-form input: labels, numbers, thanks, greetings, partial commands, changes of mind."""

import msgspec

from builders.conversation import (
    CODE,
    PAYEE_PHONE,
    PIN,
    WRONG_PIN,
    ConversationDriver,
    resolve_text_message,
)
from cases import each
from tapgate.messenger import gateway_requests
from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.model import (
    COMMANDS,
    Agent,
    Intent,
    NumberChanged,
    OptionChosen,
    Recipient,
    RequestRejected,
    TextMessage,
    UnsupportedMessage,
)


def build_driver(*texts: str, language: str = "en", **setting: object) -> ConversationDriver:
    chat = ConversationDriver(language, **setting)
    for text in texts:
        chat(resolve_text_message(text))
    return chat


# Options in words


@each(
    "language, text, document",
    [
        ("en", "selfie", "selfie"),
        ("en", "a selfie", "selfie"),
        ("en", "passport", "id_front"),
        ("en", "id card front", "id_front"),
        ("en", "ID card, back", "id_back"),
        ("en", "utility bill", "proof_of_address"),
        ("en", "i will send my passport", "id_front"),
        ("fr", "carte d'identité", "id_front"),
        ("fr", "Selfie", "selfie"),
        ("fr", "passeport", "id_front"),
        ("fr", "recto", "id_front"),
        ("fr", "justificatif de domicile", "proof_of_address"),
    ],
)
def test_document_type_can_be_given_in_words(language, text, document):
    chat = build_driver("kyc", text, language=language)
    assert chat.conversation.facts["type"] == document
    assert chat.conversation.step == "picture"


def test_next_document_type_can_be_given_in_words():
    chat = build_driver("kyc", "passport")
    chat.send_image()
    chat(resolve_text_message("selfie"))
    assert chat.conversation.facts["type"] == "selfie"
    chat.send_image()
    assert "We'll check" in chat(resolve_text_message("that's all"))


@each(
    "language, text, reason",
    [
        ("en", "lost", "lost"),
        ("en", "it was stolen", "stolen"),
        ("en", "Stolen", "stolen"),
        ("en", "lost card", "lost"),
        ("en", "someone stole it", "stolen"),
        ("en", "just block it for now", "customer_request"),
        ("fr", "perdue", "lost"),
        ("fr", "elle a été volée", "stolen"),
    ],
)
def test_block_reason_can_be_given_in_words(language, text, reason):
    chat = build_driver("block", "TG-0001", text, language=language)
    assert chat.conversation.facts["reason"] == reason
    assert chat.conversation.stage == "confirm"


def test_text_that_resembles_the_current_command_does_not_restart_it():
    chat = build_driver("kyc", "i want to verify my identity")
    assert "canceled" not in chat.reply_text
    assert chat.conversation.step == "type"


def test_global_keywords_take_precedence_over_options():
    assert build_driver("kyc", "cancel").conversation.stage == "idle"
    assert "What would you like" in build_driver("kyc", "menu").reply_text


# Yes to a question from the messenger


@each("language, yes", [("en", "yes"), ("en", "ok"), ("fr", "oui")])
def test_yes_accepts_the_offer_to_register(language, yes):
    chat = ConversationDriver(language)
    chat.gateway.subscriber = None
    chat("balance")
    chat(resolve_text_message(yes))
    assert chat.conversation.command == "register"
    assert chat.conversation.step == "names"


def test_yes_accepts_the_only_suggested_command():
    chat = ConversationDriver()
    event = TextMessage(text="the plastic", intent=Intent(candidates=("cards",)))
    assert "Did you mean this?" in chat(event)
    assert "TG-0001" in chat("yes")


def test_yes_does_not_start_a_suggested_payment():
    chat = ConversationDriver()
    chat(TextMessage(text="the thing", intent=Intent(candidates=("send",))))
    assert "not waiting for a yes or no" in chat("yes")
    assert chat.conversation.stage == "idle"


def test_yes_applies_only_to_the_last_question():
    chat = ConversationDriver()
    chat.gateway.subscriber = None
    chat("balance")
    chat("help")
    assert "not waiting for a yes or no" in chat("yes")


# Payment commands


@each(
    "text, lookup",
    [
        ("AM-10010", gateway_requests.FindPayeeByCard(card_serial="AM-10010")),
        ("076222222", gateway_requests.FindPayeeByPhone(phone=PAYEE_PHONE)),
        ("076 222 222", gateway_requests.FindPayeeByPhone(phone=PAYEE_PHONE)),
        ("+23276222222", gateway_requests.FindPayeeByPhone(phone=PAYEE_PHONE)),
    ],
)
def test_recipient_without_a_command_starts_a_payment(text, lookup):
    chat = build_driver(text)
    assert lookup in chat.gateway.requests
    assert chat.conversation.step == "amount"


@each("text", ["covid-19", "5k", "12345678", "wi-fi"])
def test_text_that_is_not_a_recipient_starts_nothing(text):
    assert build_driver(text).conversation.stage == "idle"


@each(
    "text",
    [
        "send to AM-1001 10",
        "send AM-1001 10",
        "send 10 AM-1001",
        "pay 10 to am-1001",
        "send to 076222222 10",
        "envoyer 10 à am-1001",
    ],
)
def test_complete_send_command_asks_for_confirmation_immediately(text):
    chat = build_driver(text)
    assert chat.conversation.stage == "confirm"
    assert chat.conversation.facts["amount"] == "10.00"
    payee = PAYEE_PHONE if "076222222" in text else "AM-1001"
    assert chat.conversation.facts["payee_card"] == payee


def test_unknown_lowercase_serial_is_also_looked_up_in_uppercase():
    chat = build_driver("send money", "xx-9999")
    found = [
        request.card_serial for request in chat.list_requests(gateway_requests.FindPayeeByCard)
    ]
    assert found == ["xx-9999", "XX-9999"]
    assert "can't find a card" in chat.reply_text


def test_new_send_command_replaces_the_one_awaiting_an_amount():
    chat = build_driver("send money", "AM-1001", "50000")
    assert "50,750.00 SLE" in chat.reply_text
    assert "750.00 SLE" in chat.reply_text
    chat(resolve_text_message("send 5 to AM-2002"))
    assert chat.conversation.stage == "confirm"
    assert chat.conversation.facts["payee_card"] == "AM-2002"
    assert "5.00 SLE" in chat.reply_text


def test_new_send_command_by_name_replaces_the_one_awaiting_an_amount():
    chat = ConversationDriver()
    recipient = (Recipient(name="Mohamed K.", payee="AM-7007"),)
    chat.person = msgspec.structs.replace(chat.person, recipients=recipient)
    for text in ("send money", "AM-1001", "send 5 to mohamed"):
        chat(resolve_text_message(text))
    assert chat.conversation.facts["payee_card"] == "AM-7007"
    assert chat.conversation.stage == "confirm"


def test_option_title_within_a_longer_sentence_is_not_chosen():
    chat = build_driver("menu")
    chat(TextMessage(text="has my money been send"))
    assert chat.conversation.stage == "idle"


def test_new_send_command_replaces_the_one_awaiting_confirmation():
    chat = build_driver("send 5 to AM-1001", "send 7 to AM-2002")
    assert chat.conversation.stage == "confirm"
    assert chat.conversation.facts["payee_card"] == "AM-2002"


#: The first is one more than the number of menu commands.
@each("text", [str(len(COMMANDS) - 4), "99", "12345"])
def test_number_outside_the_list_is_rejected(text):
    chat = build_driver("menu", text)
    assert "isn't on the list" in chat.reply_text
    assert chat.conversation.stage == "idle"
    assert chat.last_offer is not None


def test_number_without_a_question_starts_nothing():
    for text in ("99", "12345", "10"):
        assert build_driver(text).conversation.stage == "idle"


@each("earlier_messages", [[], ["menu"], ["send 5 to AM-1001"]])
def test_command_guessed_from_a_number_is_ignored(earlier_messages):
    chat = build_driver(*earlier_messages)
    before = chat.conversation
    for command in ("send", "balance", "cancel"):
        chat(TextMessage(text="99", intent=Intent(command=command)))
        assert (chat.conversation.stage, chat.conversation.facts) == (before.stage, before.facts)


@each("text", ["it was not stolen", "i do not know"])
def test_text_that_names_no_option_repeats_the_question(text):
    chat = build_driver("block", "TG-0001", text)
    assert chat.conversation.step == "reason"


def test_number_at_the_confirmation_does_not_change_the_payment():
    chat = build_driver("send 5 to AM-1001", "10")
    assert chat.conversation.stage == "confirm"
    assert chat.conversation.facts["amount"] == "5.00"
    assert "canceled" not in chat.reply_text


@each("text", ["send 5 to AM-1001 3434", "send 5 to 076222222 3434", "pay 5 to am-1001, 3434"])
def test_send_command_followed_by_a_pin_is_rejected(text):
    chat = build_driver(text)
    assert "looks like a PIN" in chat.reply_text
    assert chat.conversation.stage == "idle"
    chat = build_driver("send money", "AM-1001", text)
    assert "looks like a PIN" in chat.reply_text
    assert chat.conversation.step == "amount"


@each("language, text", [("en", "send 8 to mum"), ("fr", "envoie 8 à mum")])
def test_unknown_recipient_name_asks_for_the_recipient_and_keeps_the_amount(language, text):
    chat = build_driver(text, language=language)
    assert "mum" in chat.reply_text
    assert chat.conversation.step == "to"
    chat("AM-1001")
    assert chat.conversation.facts["amount"] == "8.00"


def test_saved_recipient_is_found_by_name_in_a_send_command():
    chat = ConversationDriver()
    recipient = (
        Recipient(name="Mohamed K.", payee="AM-7007"),
        Recipient(name="Fatu B.", payee="AM-8008"),
    )
    chat.person = msgspec.structs.replace(chat.person, recipients=recipient)
    chat(resolve_text_message("send 8 to Mohamed"))
    assert chat.conversation.stage == "confirm"
    assert chat.conversation.facts["payee_card"] == "AM-7007"


def test_ambiguous_recipient_name_asks_for_the_recipient():
    chat = ConversationDriver()
    recipients = tuple(Recipient(name="Mohamed K.", payee=f"AM-{n}") for n in range(2))
    chat.person = msgspec.structs.replace(chat.person, recipients=recipients)
    chat(resolve_text_message("send 8 to Mohamed"))
    assert chat.conversation.step == "to"


@each("text", ["send two fifty to AM-1001", "send $5", "send 5 USD to AM-1001"])
def test_send_command_with_an_unsupported_amount_format_is_rejected(text):
    assert "the amount in SLE as a number" in build_driver(text).reply_text


@each(
    "text, amount",
    [
        ("send two hundred to AM-1001", "200.00 SLE"),
        ("send 0.2k to AM-1001", None),
        ("sɛn tu oondrɛd to AM-1001", "200.00 SLE"),
        ("envoie deux cents à AM-1001", "200.00 SLE"),
    ],
)
def test_confirmation_names_the_figure_for_an_amount_in_words(text, amount):
    chat = build_driver(text)
    assert chat.conversation.stage == ("confirm" if amount else "collecting")
    assert amount is None or amount in chat.reply_text


def test_question_is_repeated_after_an_ambiguous_amount_in_words():
    chat = build_driver("send money", "AM-1001", "two fifty")
    assert "the amount in SLE as a number" in chat.reply_text


# PINs


@each(
    "text, command",
    [
        ("show me my balance", None),
        ("i want to talk to a person", "person"),
        ("can i talk to someone", "person"),
    ],
)
def test_clear_command_at_the_pin_question_cancels_the_payment(text, command):
    chat = build_driver("send 5 to AM-1001", "yes", text)
    assert "canceled: *Send money*" in chat.reply_text
    assert chat.conversation.command == command


@each("text", ["send money to my brother", "zzz", "hmm"])
def test_unclear_text_at_the_pin_question_keeps_it_open(text):
    chat = build_driver("send 5 to AM-1001", "yes", text)
    assert chat.conversation.is_awaiting_pin


def test_pin_change_with_only_the_old_pin_asks_for_both():
    chat = build_driver("change pin", PIN)
    assert "both" in chat.reply_text
    assert "exactly" not in chat.reply_text
    assert chat.conversation.is_awaiting_pin


@each(
    "language, text",
    [
        ("en", "i forgot my pin"),
        ("en", "reset my pin"),
        ("en", "what is my pin?"),
        ("en", "I don't remember my PIN"),
        ("fr", "j'ai oublié mon code"),
        ("fr", "quel est mon pin"),
        ("fr", "réinitialiser mon code pin"),
    ],
)
def test_forgotten_pin_starts_a_reset(language, text):
    chat = build_driver(text, language=language)
    assert chat.conversation.is_awaiting_pin
    (request,) = chat.list_requests("subscribers.request_pin_reset")
    assert request.arguments == ("sub_me",)
    chat(f"{CODE} 7352")
    (reset,) = chat.list_requests("subscribers.reset_pin")
    assert reset.fields == {"otp": CODE, "new_pin": "7352"}
    assert chat.conversation.stage == "idle"


def test_forgotten_pin_at_the_pin_question_cancels_and_starts_a_reset():
    chat = build_driver("send 5 to AM-1001", "yes", "i forgot my pin")
    assert "canceled" in chat.reply_text
    assert chat.conversation.command == "reset_pin"


@each("text", [CODE, f"my code is {CODE}", "604 829"])
def test_unrequested_code_opens_the_reset_form_and_sends_no_code(text):
    chat = ConversationDriver(pin_entry_mode="form")
    chat(text)
    assert chat.replies[-1].form == "reset_pin"
    assert CODE not in str(msgspec.json.encode(chat.conversation))
    assert chat.list_requests("subscribers.request_pin_reset") == []
    assert "in the form" in chat(CODE)


def test_person_with_several_pins_chooses_one():
    chat = ConversationDriver()
    chat.gateway.agent = Agent(id="agt_1", name="Bo Shop")
    chat.gateway.child_cards = [chat.gateway.cards[1]]
    chat("forgot my pin")
    values = [option.id.partition("#")[0] for option in chat.last_offer.options]
    assert values == ["subscriber", "agent", "card:TG-0002"]
    chat.choose_option("agent")
    (request,) = chat.list_requests("agents.request_pin_reset")
    assert request.arguments == ("agt_1",)
    assert "Ibrahim" in chat("my child forgot the pin")


@each(
    "language, wrong, weak, invalid",
    [
        ("en", "Tries left: 2", "too easy", "no longer valid"),
        ("fr", "Essais restants : 2", "trop facile", "n'est plus valable"),
    ],
)
def test_rejected_reset_is_explained(language, wrong, weak, invalid):
    chat = ConversationDriver(language)
    chat.gateway.overrides = {
        "subscribers.reset_pin": [
            RequestRejected(code="INVALID_OTP", details={"attempts_remaining": 2}),
            RequestRejected(code="VALIDATION_FAILED", details={"fields": {"new_pin": "weak"}}),
            RequestRejected(code="INVALID_OTP", details={"attempts_remaining": 0}),
        ]
    }
    chat(CODE)
    for text in (wrong, weak, invalid):
        assert text in chat(f"{CODE} 7352")
    assert chat.conversation.stage == "idle"


@each(
    "details, text",
    [
        ({"limit": "codes", "retry_after": 600}, "in 10 minutes"),
        ({"limit": "codes", "retry_after": 40}, "Enter the 6-digit code"),
        ({"limit": "wrong_codes", "retry_after": 80000}, "too many wrong codes"),
    ],
)
def test_limits_on_codes_are_explained(details, text):
    chat = ConversationDriver()
    error = RequestRejected(code="RATE_LIMITED", details=details)
    chat.gateway.overrides = {"subscribers.request_pin_reset": [error]}
    assert text in chat("forgot pin")


def test_pin_cannot_be_reset_after_a_number_change():
    chat = ConversationDriver()
    chat(NumberChanged())
    chat("forgot my pin")
    assert chat.conversation.stage == "idle"
    assert chat.list_requests("subscribers.request_pin_reset") == []


def test_pin_change_request_is_not_treated_as_a_forgotten_pin():
    for text in ("change my pin", "change pin", "i want a new pin"):
        assert build_driver(text).conversation.command == "change_pin"


@each("event", [TextMessage(text=PIN), TextMessage(text=None)])
def test_pin_after_expiry_is_answered_with_the_expiry_notice_only(event):
    chat = ConversationDriver()
    chat.conversation = Conversation(lapsed=True)
    reply = chat(event)
    assert "timed out" in reply
    assert "didn't ask" not in reply
    assert len(chat.replies) == 1
    assert not chat.conversation.lapsed


@each("language, duration", [("en", "30 minutes"), ("fr", "30 minutes")])
def test_pin_lockout_message_states_the_lockout_duration(language, duration):
    chat = build_driver("send 5 to AM-1001", "yes", language=language)
    for _ in range(3):
        chat(WRONG_PIN)
    assert duration in chat.reply_text


# Small talk


@each(
    "language, text, reply",
    [
        ("en", "thank you", "welcome"),
        ("en", "thanks a lot!", "welcome"),
        ("fr", "merci", "plaisir"),
        ("fr", "merci beaucoup", "plaisir"),
        ("en", "ok", "here"),
        ("en", "bye", "here"),
        ("en", "no thanks", "here"),
        ("fr", "au revoir", "là"),
        ("fr", "non merci", "là"),
    ],
)
def test_small_talk_gets_a_single_friendly_reply(language, text, reply):
    chat = build_driver(text, language=language)
    assert reply in chat.reply_text
    assert len(chat.replies) == 1
    assert "not waiting for a yes or no" not in chat.reply_text
    assert chat.gateway.requests == []


def test_thanks_do_not_cancel_a_payment():
    chat = build_driver("send 5 to AM-1001", "thank you")
    assert chat.conversation.stage == "confirm"


@each("language, greeting", [("en", "hello"), ("en", "hi"), ("fr", "bonjour")])
@each("earlier_messages", [["send 5 to AM-1001"], ["send 5 to AM-1001", "yes"], ["kyc"]])
def test_greeting_does_not_interrupt_a_command(language, greeting, earlier_messages):
    chat = build_driver(*earlier_messages, language=language)
    before = chat.conversation
    chat(resolve_text_message(greeting))
    assert (chat.conversation.stage, chat.conversation.step) == (before.stage, before.step)
    assert "canceled" not in chat.reply_text


def test_menu_cancels_the_command_in_progress():
    assert "canceled" in build_driver("send 5 to AM-1001", "menu").reply_text


@each("text", ["I do not want to send money", "i don't want to send money"])
def test_negated_send_request_does_not_start_or_continue_a_payment(text):
    assert build_driver("send 5 to AM-1001", text).conversation.stage == "idle"
    assert "Send money" not in build_driver(text).reply_text


@each("kind", ["reaction", "sticker"])
def test_unsupported_message_gets_a_single_reply_and_keeps_the_stage(kind):
    for earlier_messages in ([], ["send 5 to AM-1001"], ["send 5 to AM-1001", "yes"]):
        chat = build_driver(*earlier_messages)
        stage = chat.conversation.stage
        chat(UnsupportedMessage(kind=kind))
        assert len(chat.replies) == 1
        assert chat.conversation.stage == stage


# Support requests


@each(
    "text",
    [
        "delete my account",
        "my phone was stolen",
        "mon téléphone a été volé",
    ],
)
def test_guessed_support_request_requires_confirmation(text):
    chat = build_driver(text)
    assert chat.list_requests(gateway_requests.ContactSupport) == []
    assert chat.conversation.stage == "confirm"
    chat("yes")
    assert chat.conversation.command == "person"


def test_explicit_support_request_asks_for_words_without_confirmation():
    for chat in (build_driver("talk to a person"), build_driver("menu")):
        if chat.conversation.command != "person":
            chat.choose_option("cmd:person")
        assert "What can our support team" in chat.reply_text
        chat("Was I charged a fee? Thanks")
        (request,) = chat.list_requests(gateway_requests.ContactSupport)
        assert (request.phone, request.text) == (chat.person.phone, "Was I charged a fee? Thanks")
        assert chat.conversation.command is None
        assert "charged" not in str(msgspec.to_builtins(chat.conversation))


@each(
    "language, text",
    [
        ("en", "cancel my last payment"),
        ("en", "reverse my last transfer"),
        ("en", "I sent money to the wrong person"),
        ("fr", "annuler mon dernier paiement"),
    ],
)
def test_request_to_reverse_a_payment_offers_support(language, text):
    chat = build_driver(text, language=language)
    assert chat.last_offer.options[0].id == "cmd:person"
    assert chat.list_requests(gateway_requests.ContactSupport) == []
    chat("yes")
    assert chat.conversation.command == "person"


@each(
    "text, reason",
    [
        ("my card was stolen", "stolen"),
        ("i lost my card", "lost"),
        ("lost my card", "lost"),
        ("j'ai perdu ma carte", "lost"),
        ("on a volé ma carte", "stolen"),
    ],
)
def test_block_reason_in_the_first_message_is_not_asked_for_again(text, reason):
    chat = ConversationDriver()
    chat.gateway.cards = chat.gateway.cards[:1]
    chat(resolve_text_message(text))
    assert chat.conversation.stage == "confirm"
    assert chat.conversation.facts["reason"] == reason
    assert chat.gateway.cards[0].status == "ACTIVE"


# Other


def test_extra_image_is_kept_and_its_type_is_requested():
    chat = build_driver("kyc", "selfie")
    chat.send_image()
    assert "What does your other photo show" in chat.send_image()
    assert len(chat.replies) == 1
    assert "id_front" in {option.id.partition("#")[0] for option in chat.last_offer.options}


def test_repeated_question_keeps_its_option_ids():
    chat = build_driver("send 5 to AM-1001")
    first = chat.get_option_id("yes")
    chat("hm?")
    assert chat.get_option_id("yes") == first
    chat(OptionChosen(id=first))
    assert chat.conversation.is_awaiting_pin


def test_option_ids_of_a_canceled_payment_expire():
    chat = build_driver("send 5 to AM-1001")
    first = chat.get_option_id("yes")
    chat("cancel")
    chat(resolve_text_message("send 5 to AM-1001"))
    assert "expired" in chat(OptionChosen(id=first))
    assert chat.conversation.stage == "confirm"


@each(
    "language, text, amount",
    [
        ("en", "what are the fees?", "100"),
        ("en", "how much does it cost to send 100", None),
        ("fr", "quels sont les frais", "100"),
    ],
)
def test_fee_question_offers_send_and_keeps_the_pin_question_open(language, text, amount):
    chat = build_driver(text, language=language)
    if amount is not None:
        assert (chat.conversation.command, chat.conversation.step) == ("fees", "amount")
        chat(amount)
    assert chat.last_offer.options[0].id == "cmd:send"
    chat = build_driver("send 5 to AM-1001", "yes", text, language=language)
    assert chat.conversation.is_awaiting_pin
