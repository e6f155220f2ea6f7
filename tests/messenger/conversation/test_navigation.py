"""Menu, help, language, global keywords, and unexpected events in any state."""

import msgspec
import pytest

from messenger.conversation.builders import (
    PIN,
    ConversationDriver,
    build_text_message,
    reencode_conversation,
)
from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.model import gateway_requests
from tapgate.messenger.model.events import (
    FormClosed,
    FormSubmitted,
    GatewayUnreachable,
    ImageRejected,
    Intent,
    NumberChanged,
    OptionChosen,
    RequestRejected,
    RequestSucceeded,
    TextMessage,
    UnsupportedMessage,
)
from tapgate.messenger.model.people import SetLanguage, SetTrusted
from tapgate.messenger.model.replies import OptionList, PinRequest


@pytest.mark.parametrize(
    ("language", "hello"), [("en", "What would you like"), ("fr", "Que souhaitez-vous")]
)
def test_menu_offers_every_command(language, hello):
    story = ConversationDriver(language)
    assert hello in story("menu")
    offered = {option.id for option in story.last_offer.options}
    assert {"cmd:balance", "cmd:send", "cmd:person", "cmd:register"} <= offered
    assert len(offered) == 15
    assert story.last_offer.options[0].id == "cmd:balance"


def test_menu_greets_by_name_once_the_subscriber_is_known():
    story = ConversationDriver()
    assert "Mariama" not in story("menu")
    story("balance")
    assert "Hello Mariama" in story("menu")
    assert "cmd:register" not in {option.id for option in story.last_offer.options}


def test_more_shows_the_next_page_and_wraps_to_the_first():
    story = ConversationDriver()
    story("menu")
    first = story.last_offer
    story(OptionChosen(id=first.more.id))
    assert isinstance(story.replies[-1], OptionList)
    assert story.replies[-1].start == 9
    story("more")
    assert story.replies[-1].start == 0


def test_option_numbers_continue_across_pages():
    story = ConversationDriver()
    story("menu")
    number = [option.id for option in story.last_offer.options].index("cmd:limits") + 1
    assert "Your limits" in story(str(number))


def test_menu_option_never_expires():
    story = ConversationDriver()
    story("menu")
    story("balance")
    story("help")
    assert "1,000.00 SLE" in story(OptionChosen(id="cmd:balance"))


@pytest.mark.parametrize("command", ["yes", "no", "cancel", "nonsense", ""])
def test_forged_menu_option_is_rejected_as_expired(command):
    story = ConversationDriver()
    for word in ("send money", "AM-1001", "500"):
        story(word)
    assert "expired" in story(OptionChosen(id=f"cmd:{command}"))
    assert story.conversation.stage == "confirm"


@pytest.mark.parametrize("language", ["en", "fr"])
def test_help_mentions_the_pin(language):
    story = ConversationDriver(language)
    assert "PIN" in story("help")


def test_language_of_the_first_message_is_saved():
    story = ConversationDriver(language=None)
    story(TextMessage(text="solde", intent=Intent(command="balance", language="fr")))
    assert SetLanguage(language="fr") in story.effects
    assert "Votre solde est" in story.reply_text
    story(TextMessage(text="balance", intent=Intent(command="balance", language="en")))
    assert "Votre solde est" in story.reply_text


def test_language_can_be_changed():
    story = ConversationDriver()
    story("language")
    assert "continuons en français" in story.choose_option("fr")
    assert story.person.language == "fr"
    assert "continuons en français" not in story(build_text_message("speak english", "language"))
    assert story.person.language == "en"
    story("language")
    assert "français" in story("Français")


def test_support_request_includes_the_phone_number():
    story = ConversationDriver("fr")
    assert "Un conseiller va bientôt" in story(build_text_message("humain", "person"))
    assert story.list_calls(gateway_requests.RequestSupport)[0].phone == story.person.phone


@pytest.mark.parametrize(
    "word",
    ["menu", "help", "balance", "send money", "history", "cards", "kyc", "register", "cancel"],
)
@pytest.mark.parametrize("so_far", [[], ["AM-1001"], ["AM-1001", "500"], ["AM-1001", "500", "yes"]])
def test_global_keyword_cancels_the_payment_in_any_state(word, so_far):
    story = ConversationDriver()
    for earlier in ("send money", *so_far):
        story(earlier)
    answer = story(word)
    assert "canceled: *Send money*" in answer
    assert story.conversation.facts.keys().isdisjoint({"amount", "payee"})


def test_ambiguous_text_offers_the_candidate_commands():
    story = ConversationDriver()
    story(
        TextMessage(text="card or so", intent=Intent(candidates=("cards", "link", "block", "yes")))
    )
    assert [option.id for option in story.last_offer.options] == [
        "cmd:cards",
        "cmd:link",
        "cmd:block",
    ]


def test_unrecognized_text_offers_options():
    story = ConversationDriver()
    assert "didn't understand" in story("blah")
    assert story.last_offer is not None


def test_unsolicited_pin_is_neither_echoed_nor_stored():
    story = ConversationDriver()
    answer = story(PIN)
    assert "didn't ask" in answer
    assert PIN not in answer
    for word in ("send money", PIN):
        story(word)
    assert story.conversation.piece == "to"
    assert PIN not in msgspec.json.encode(story.conversation).decode()


def test_expired_conversation_is_announced_once():
    story = ConversationDriver()
    story.conversation = Conversation(lapsed=True)
    assert "canceled your request" in story("balance")
    assert "canceled" not in story("balance")


@pytest.mark.parametrize(
    "event",
    [
        UnsupportedMessage(kind="sticker"),
        ImageRejected(reason="is damaged"),
        TextMessage(text=None),
        TextMessage(text=""),
        OptionChosen(id="yes#1"),
        FormSubmitted(operation="op-x", pin=PIN),
        NumberChanged(),
        RequestSucceeded(result=None),
        RequestRejected(code="INTERNAL_ERROR"),
        GatewayUnreachable(uncertain=True),
    ],
    ids=lambda event: type(event).__name__,
)
@pytest.mark.parametrize("so_far", [[], ["send money"], ["send money", "AM-1001", "500", "yes"]])
def test_any_event_gets_a_reply_in_any_state(event, so_far):
    story = ConversationDriver()
    for word in so_far:
        story(word)
    assert story(event)
    assert PIN not in story.reply_text


def test_closing_an_unexpected_form_gets_no_reply():
    assert ConversationDriver()(FormClosed()) == ""


def test_interrupted_payment_is_resumed_with_the_same_operation():
    """The executing stage is saved before money moves, so a crash never loses the operation."""
    story = ConversationDriver()
    for word in ("send money", "AM-1001", "500", "yes"):
        story(word)
    operation = story.conversation.operation
    story.conversation = msgspec.structs.replace(story.conversation, stage="executing")
    assert "won't be charged twice" in story("hello?")
    assert story.conversation.operation == operation
    assert "Done!" in story(PIN)


def test_number_change_clears_an_interrupted_payment():
    story = ConversationDriver()
    for word in ("send money", "AM-1001", "500", "yes"):
        story(word)
    story.conversation = msgspec.structs.replace(story.conversation, stage="executing")
    story(NumberChanged())
    assert story.effects == [SetTrusted(trusted=False)]
    assert story.conversation.operation is None


def test_uncertain_payment_is_reported_when_pin_entry_is_unavailable():
    story = ConversationDriver()
    for word in ("send money", "AM-1001", "500", "yes"):
        story(word)
    story.gateway.lost_responses = [gateway_requests.SendMoney]
    story(PIN)
    story.settings["pin_entry_mode"] = "none"
    assert "may have gone through" in story(PIN)


def test_number_change_requires_the_pin_once():
    story = ConversationDriver()
    for word in ("send money", "AM-1001", "500"):
        story(word)
    story(NumberChanged())
    assert story.effects == [SetTrusted(trusted=False)]
    assert story.conversation.stage == "idle"
    assert "Mariama" not in story("menu")
    answer = story("balance")
    assert "I need your PIN once" in answer
    assert "SLE" not in answer
    assert "1,000.00 SLE" in story(PIN)
    assert story.person.trusted
    assert "1,000.00 SLE" in story("balance")


def test_number_change_requires_the_pin_in_a_form():
    story = ConversationDriver(pin_entry_mode="form")
    story(NumberChanged())
    story("cards")
    assert isinstance(story.replies[-1], PinRequest)
    assert "TG-0001" in story.submit_pin_form()


def test_number_change_blocks_access_when_pin_entry_is_unavailable():
    story = ConversationDriver(pin_entry_mode="none")
    story(NumberChanged())
    answer = story("balance")
    assert "isn't safe to share" in answer
    assert "SLE" not in answer


def test_unreachable_gateway_offers_a_retry():
    story = ConversationDriver()
    story.gateway.overrides = {
        gateway_requests.GetBalance: [GatewayUnreachable(uncertain=False)] * 2
    }
    assert "can't reach the payment service" in story("balance")
    assert "can't reach the payment service" in story.choose_option("again")
    assert "1,000.00 SLE" in story("1")


def test_unregistered_user_is_offered_registration():
    story = ConversationDriver()
    story.gateway.subscriber = None
    assert "no wallet" in story("balance")
    assert story.conversation.stage == "idle"
    assert "first and last name" in story.choose_option("cmd:register")


@pytest.mark.parametrize("status", ["blocked", "closed"])
def test_inactive_subscriber_is_offered_support(status):
    story = ConversationDriver()
    story.gateway.subscriber = msgspec.structs.replace(story.gateway.subscriber, status=status)
    assert "isn't active" in story("send money")
    assert "cmd:person" in {option.id for option in story.last_offer.options}


def test_conversation_survives_a_json_round_trip():
    story = ConversationDriver()
    for word in ("send money", "AM-1001", "500", "yes"):
        story(word)
        assert reencode_conversation(story.conversation) == story.conversation


@pytest.mark.parametrize("asked", ["send money", "link a card"])
@pytest.mark.parametrize("written", ["pin{}", "PIN:{}", "code-{}"])
def test_pin_is_not_accepted_as_a_card_serial(asked, written):
    story = ConversationDriver()
    story(asked)
    assert "looks like a PIN" in story(written.format(PIN))
    assert PIN not in story.reply_text
    assert PIN not in str(story.conversation)


@pytest.mark.parametrize("word", ["mdr", "banane", "voilà", "lol"])
def test_unrecognized_first_word_does_not_set_the_language(word):
    story = ConversationDriver(None)
    story(word)
    assert story.person.language is None
