"""What people really write: labels, numbers, thanks, greetings, half orders, changes of mind."""

import msgspec
import pytest

from messenger.conversation.builders import (
    PAYEE_PHONE,
    PIN,
    WRONG_PIN,
    ConversationDriver,
    resolve_text_message,
)
from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.model import gateway_requests
from tapgate.messenger.model.events import Intent, OptionChosen, TextMessage, UnsupportedMessage
from tapgate.messenger.model.people import Recipient


def build_driver(*texts: str, language: str = "en", **setting: object) -> ConversationDriver:
    story = ConversationDriver(language, **setting)
    for text in texts:
        story(resolve_text_message(text))
    return story


# An option in words


@pytest.mark.parametrize(
    ("language", "text", "document"),
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
def test_a_document_in_words(language, text, document):
    story = build_driver("kyc", text, language=language)
    assert story.conversation.facts["type"] == document
    assert story.conversation.piece == "picture"


def test_the_next_document_in_words():
    story = build_driver("kyc", "passport")
    story.send_image()
    story(resolve_text_message("selfie"))
    assert story.conversation.facts["type"] == "selfie"
    story.send_image()
    assert "We will check" in story(resolve_text_message("that's all"))


@pytest.mark.parametrize(
    ("language", "text", "reason"),
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
def test_a_reason_in_words(language, text, reason):
    story = build_driver("block", "TG-0001", text, language=language)
    assert story.conversation.facts["reason"] == reason
    assert story.conversation.stage == "confirm"


def test_what_is_like_the_command_at_work_does_not_begin_it_again():
    story = build_driver("kyc", "i want to verify my identity")
    assert "cancelled" not in story.reply_text
    assert story.conversation.piece == "type"


def test_the_words_that_always_work_win_over_options():
    assert build_driver("kyc", "cancel").conversation.stage == "idle"
    assert "What would you like" in build_driver("kyc", "menu").reply_text


# Yes to what the messenger asked


@pytest.mark.parametrize(("language", "yes"), [("en", "yes"), ("en", "ok"), ("fr", "oui")])
def test_yes_to_opening_a_wallet(language, yes):
    story = ConversationDriver(language)
    story.gateway.subscriber = None
    story("balance")
    story(resolve_text_message(yes))
    assert story.conversation.command == "register"
    assert story.conversation.piece == "names"


def test_yes_to_the_only_thing_that_may_be_meant():
    story = ConversationDriver()
    story(TextMessage(text="the plastic", intent=Intent(candidates=("cards",))))
    assert "TG-0001" in story("yes")


def test_yes_never_begins_a_payment():
    story = ConversationDriver()
    story(TextMessage(text="the thing", intent=Intent(candidates=("send",))))
    assert "Nothing is waiting" in story("yes")
    assert story.conversation.stage == "idle"


def test_yes_holds_for_the_last_question_only():
    story = ConversationDriver()
    story.gateway.subscriber = None
    story("balance")
    story("help")
    assert "Nothing is waiting" in story("yes")


# Orders


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("AM-10010", gateway_requests.FindPayeeByCard(card_serial="AM-10010")),
        ("076222222", gateway_requests.FindPayeeByPhone(phone=PAYEE_PHONE)),
        ("076 222 222", gateway_requests.FindPayeeByPhone(phone=PAYEE_PHONE)),
        ("+23276222222", gateway_requests.FindPayeeByPhone(phone=PAYEE_PHONE)),
    ],
)
def test_a_recipient_out_of_the_blue(text, call):
    story = build_driver(text)
    assert call in story.gateway.calls
    assert story.conversation.piece == "amount"


@pytest.mark.parametrize("text", ["covid-19", "5k", "12345678", "wi-fi"])
def test_what_is_no_recipient_begins_nothing(text):
    assert build_driver(text).conversation.stage == "idle"


@pytest.mark.parametrize(
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
def test_a_whole_order(text):
    story = build_driver(text)
    assert story.conversation.stage == "confirm"
    assert story.conversation.facts["amount"] == "10.00"
    assert story.conversation.facts["payee_card"] == "AM-1001"


def test_a_serial_in_small_letters_that_nobody_has():
    story = build_driver("send money", "xx-9999")
    assert [call.card_serial for call in story.list_calls(gateway_requests.FindPayeeByCard)] == [
        "xx-9999",
        "XX-9999",
    ]
    assert "do not know a card" in story.reply_text


def test_another_order_instead_of_another_amount():
    story = build_driver("send money", "AM-1001", "50000")
    assert "50,750.00 SLE" in story.reply_text
    assert "750.00 SLE" in story.reply_text
    story(resolve_text_message("send 5 to AM-2002"))
    assert story.conversation.stage == "confirm"
    assert story.conversation.facts["payee_card"] == "AM-2002"
    assert "5.00 SLE" in story.reply_text


def test_another_order_by_name_instead_of_another_amount():
    story = ConversationDriver()
    kept = (Recipient(name="Mohamed K.", card_serial="AM-7007"),)
    story.person = msgspec.structs.replace(story.person, recipients=kept)
    for text in ("send money", "AM-1001", "send 5 to mohamed"):
        story(resolve_text_message(text))
    assert story.conversation.facts["payee_card"] == "AM-7007"
    assert story.conversation.stage == "confirm"


def test_a_title_of_a_command_with_other_words_is_not_tapped():
    story = build_driver("menu")
    story(TextMessage(text="has my money been send"))
    assert story.conversation.stage == "idle"


def test_a_whole_new_order_at_the_confirmation():
    story = build_driver("send 5 to AM-1001", "send 7 to AM-2002")
    assert story.conversation.stage == "confirm"
    assert story.conversation.facts["payee_card"] == "AM-2002"


@pytest.mark.parametrize("text", ["16", "99", "12345"])
def test_a_number_that_is_not_on_the_list(text):
    story = build_driver("menu", text)
    assert "not on the list" in story.reply_text
    assert story.conversation.stage == "idle"
    assert story.last_offer is not None


def test_a_number_out_of_the_blue():
    for text in ("99", "12345", "10"):
        assert build_driver(text).conversation.stage == "idle"


@pytest.mark.parametrize("so_far", [[], ["menu"], ["send 5 to AM-1001"]])
def test_a_number_is_not_guessed_at(so_far):
    story = build_driver(*so_far)
    before = story.conversation
    for command in ("send", "balance", "cancel"):
        story(TextMessage(text="99", intent=Intent(command=command)))
        assert (story.conversation.stage, story.conversation.facts) == (before.stage, before.facts)


@pytest.mark.parametrize("text", ["it was not stolen", "i do not know"])
def test_what_names_no_option_asks_again(text):
    story = build_driver("block", "TG-0001", text)
    assert story.conversation.piece == "reason"


def test_a_number_at_the_confirmation_is_no_new_order():
    story = build_driver("send 5 to AM-1001", "10")
    assert story.conversation.stage == "confirm"
    assert story.conversation.facts["amount"] == "5.00"
    assert "cancelled" not in story.reply_text


@pytest.mark.parametrize(
    "text", ["send 5 to AM-1001 3434", "send 5 to 076222222 3434", "pay 5 to am-1001, 3434"]
)
def test_an_order_with_a_pin_behind_it(text):
    story = build_driver(text)
    assert "looks like a PIN" in story.reply_text
    assert story.conversation.stage == "idle"
    story = build_driver("send money", "AM-1001", text)
    assert "looks like a PIN" in story.reply_text
    assert story.conversation.piece == "amount"


@pytest.mark.parametrize(("language", "text"), [("en", "send 8 to mum"), ("fr", "envoie 8 à mum")])
def test_somebody_who_is_not_known_by_name(language, text):
    story = build_driver(text, language=language)
    assert "mum" in story.reply_text
    assert story.conversation.piece == "to"
    story("AM-1001")
    assert story.conversation.facts["amount"] == "8.00"


def test_a_kept_recipient_by_name_in_an_order():
    story = ConversationDriver()
    kept = (
        Recipient(name="Mohamed K.", card_serial="AM-7007"),
        Recipient(name="Fatu B.", card_serial="AM-8008"),
    )
    story.person = msgspec.structs.replace(story.person, recipients=kept)
    story(resolve_text_message("send 8 to Mohamed"))
    assert story.conversation.stage == "confirm"
    assert story.conversation.facts["payee_card"] == "AM-7007"


def test_two_of_the_same_name_are_asked_for():
    story = ConversationDriver()
    kept = tuple(Recipient(name="Mohamed K.", card_serial=f"AM-{n}") for n in range(2))
    story.person = msgspec.structs.replace(story.person, recipients=kept)
    story(resolve_text_message("send 8 to Mohamed"))
    assert story.conversation.piece == "to"


@pytest.mark.parametrize("text", ["send 1k to AM-1001", "send $5", "send 5 USD to AM-1001"])
def test_an_amount_that_is_not_taken(text):
    assert "in figures, in SLE" in build_driver(text).reply_text


def test_an_amount_that_is_no_figure():
    assert "in figures, in SLE" in build_driver("send money", "AM-1001", "1k").reply_text


# PINs


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("show me my balance", None),
        ("i want to talk to a person", "person"),
        ("can i talk to someone", "person"),
    ],
)
def test_something_else_than_a_pin(text, command):
    story = build_driver("send 5 to AM-1001", "yes", text)
    assert "cancelled: *Send money*" in story.reply_text
    assert story.conversation.command == command


@pytest.mark.parametrize("text", ["send money to my brother", "zzz", "hmm"])
def test_a_pin_question_stays(text):
    story = build_driver("send 5 to AM-1001", "yes", text)
    assert story.conversation.is_awaiting_pin


def test_only_the_old_pin():
    story = build_driver("change pin", PIN)
    assert "both" in story.reply_text
    assert "exactly" not in story.reply_text
    assert story.conversation.is_awaiting_pin


@pytest.mark.parametrize(
    ("language", "text"),
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
def test_a_forgotten_pin(language, text):
    story = build_driver(text, language=language)
    assert story.conversation.stage == "idle"
    assert story.last_offer.options[0].id == "cmd:person"
    assert story.list_calls(gateway_requests.RequestSupport) == []
    story("yes")
    assert len(story.list_calls(gateway_requests.RequestSupport)) == 1


def test_a_pin_is_forgotten_when_it_is_asked_for():
    story = build_driver("send 5 to AM-1001", "yes", "i forgot my pin")
    assert "cancelled" in story.reply_text
    assert story.last_offer.options[0].id == "cmd:person"


def test_changing_a_pin_is_not_forgetting_it():
    for text in ("change my pin", "change pin", "i want a new pin"):
        assert build_driver(text).conversation.command == "change_pin"


@pytest.mark.parametrize("event", [TextMessage(text=PIN), TextMessage(text=None)])
def test_a_pin_that_comes_too_late(event):
    story = ConversationDriver()
    story.conversation = Conversation(lapsed=True)
    answer = story(event)
    assert "took too long" in answer
    assert "did not ask" not in answer
    assert len(story.replies) == 1
    assert not story.conversation.lapsed


@pytest.mark.parametrize(("language", "long"), [("en", "30 minutes"), ("fr", "30 minutes")])
def test_how_long_a_pin_is_locked(language, long):
    story = build_driver("send 5 to AM-1001", "yes", language=language)
    for _ in range(3):
        story(WRONG_PIN)
    assert long in story.reply_text


# Courtesies


@pytest.mark.parametrize(
    ("language", "text", "friendly"),
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
def test_courtesies(language, text, friendly):
    story = build_driver(text, language=language)
    assert friendly in story.reply_text
    assert len(story.replies) == 1
    assert "Nothing is waiting" not in story.reply_text
    assert story.gateway.calls == []


def test_thanks_do_not_end_anything():
    story = build_driver("send 5 to AM-1001", "thank you")
    assert story.conversation.stage == "confirm"


@pytest.mark.parametrize(("language", "hello"), [("en", "hello"), ("en", "hi"), ("fr", "bonjour")])
@pytest.mark.parametrize("so_far", [["send 5 to AM-1001"], ["send 5 to AM-1001", "yes"], ["kyc"]])
def test_a_greeting_in_the_middle(language, hello, so_far):
    story = build_driver(*so_far, language=language)
    before = story.conversation
    story(resolve_text_message(hello))
    assert (story.conversation.stage, story.conversation.piece) == (before.stage, before.piece)
    assert "cancelled" not in story.reply_text


def test_the_menu_still_cancels():
    assert "cancelled" in build_driver("send 5 to AM-1001", "menu").reply_text


@pytest.mark.parametrize("text", ["I do not want to send money", "i don't want to send money"])
def test_not_wanting_to_send(text):
    assert build_driver("send 5 to AM-1001", text).conversation.stage == "idle"
    assert "Send money" not in build_driver(text).reply_text


@pytest.mark.parametrize("kind", ["reaction", "sticker"])
def test_a_sticker_gets_one_answer(kind):
    for so_far in ([], ["send 5 to AM-1001"], ["send 5 to AM-1001", "yes"]):
        story = build_driver(*so_far)
        stage = story.conversation.stage
        story(UnsupportedMessage(kind=kind))
        assert len(story.replies) == 1
        assert story.conversation.stage == stage


# A person


@pytest.mark.parametrize(
    "text",
    [
        "delete my account",
        "I sent money to the wrong person",
        "my phone was stolen",
        "mon téléphone a été volé",
    ],
)
def test_a_person_by_guess_is_asked_first(text):
    story = build_driver(text)
    assert story.list_calls(gateway_requests.RequestSupport) == []
    assert story.conversation.stage == "confirm"
    story("yes")
    assert len(story.list_calls(gateway_requests.RequestSupport)) == 1


def test_a_person_in_so_many_words():
    assert len(build_driver("talk to a person").list_calls(gateway_requests.RequestSupport)) == 1
    story = build_driver("menu")
    story.choose_option("cmd:person")
    assert len(story.list_calls(gateway_requests.RequestSupport)) == 1


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "cancel my last payment"),
        ("en", "reverse my last transfer"),
        ("fr", "annuler mon dernier paiement"),
    ],
)
def test_a_payment_is_not_taken_back(language, text):
    story = build_driver(text, language=language)
    assert story.last_offer.options[0].id == "cmd:person"
    assert story.list_calls(gateway_requests.RequestSupport) == []
    story("yes")
    assert len(story.list_calls(gateway_requests.RequestSupport)) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("my card was stolen", "stolen"),
        ("i lost my card", "lost"),
        ("lost my card", "lost"),
        ("j'ai perdu ma carte", "lost"),
        ("on a volé ma carte", "stolen"),
    ],
)
def test_what_happened_to_a_card_is_not_asked_again(text, reason):
    story = ConversationDriver()
    story.gateway.cards = story.gateway.cards[:1]
    story(resolve_text_message(text))
    assert story.conversation.stage == "confirm"
    assert story.conversation.facts["reason"] == reason
    assert story.gateway.cards[0].status == "ACTIVE"


# The rest


def test_an_extra_picture():
    story = build_driver("kyc", "selfie")
    story.send_image()
    answer = story.send_image()
    assert len(story.replies) == 1
    assert "I got it" not in answer
    assert "id_front" in {option.id.partition("#")[0] for option in story.last_offer.options}


def test_either_copy_of_the_same_question_works():
    story = build_driver("send 5 to AM-1001")
    first = story.get_option_id("yes")
    story("hm?")
    assert story.get_option_id("yes") == first
    story(OptionChosen(id=first))
    assert story.conversation.is_awaiting_pin


def test_the_same_order_again_is_another_question():
    story = build_driver("send 5 to AM-1001")
    first = story.get_option_id("yes")
    story("cancel")
    story(resolve_text_message("send 5 to AM-1001"))
    assert "expired" in story(OptionChosen(id=first))
    assert story.conversation.stage == "confirm"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "what are the fees?"),
        ("en", "how much does it cost to send 100"),
        ("fr", "quels sont les frais"),
    ],
)
def test_fees(language, text):
    story = build_driver(text, language=language)
    assert story.last_offer.options[0].id == "cmd:send"
    story = build_driver("send 5 to AM-1001", "yes", text, language=language)
    assert story.conversation.is_awaiting_pin
