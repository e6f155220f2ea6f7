"""Menu, help, language, global keywords, and unexpected events in any state."""

import msgspec

from builders.conversation import PIN, ConversationDriver, build_text_message, reencode_conversation
from cases import each
from tapgate.messenger import gateway_requests
from tapgate.messenger.conversation.commands.agents import AGENT_MENU
from tapgate.messenger.conversation.commands.questions import UNAVAILABLE_SERVICES
from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.model import (
    COMMANDS,
    FormClosed,
    FormSubmitted,
    GatewayUnreachable,
    ImageRejected,
    Intent,
    NumberChanged,
    OptionChosen,
    OptionList,
    PinRequest,
    RequestRejected,
    RequestSucceeded,
    TextMessage,
    UnsupportedMessage,
)

#: Commands that answer a message, and are offered with it.
ANSWERS = ("return_money", "keep_money", "not_me", "opt_out", "opt_in")


@each("language, greeting", [("en", "What would you like"), ("fr", "Que souhaitez-vous")])
def test_menu_offers_every_command(language, greeting):
    chat = ConversationDriver(language)
    assert greeting in chat("menu")
    offered = {option.id for option in chat.last_offer.options}
    offered_to_all = {"reset_pin", "language", "help", "person"}
    not_listed = {"menu", "register", "confirm_cash_out", "yes", "no", "cancel", *ANSWERS}
    not_listed |= {*UNAVAILABLE_SERVICES, *({*AGENT_MENU, "agent_menu"} - offered_to_all)}
    assert offered == {f"cmd:{command}" for command in {*COMMANDS} - not_listed}
    assert chat.last_offer.options[0].id == "cmd:balance"


def test_menu_greets_by_name_and_offers_registration_only_to_new_customers():
    chat = ConversationDriver()
    assert "Hello Mariama" in chat("menu")
    assert "cmd:register" not in {option.id for option in chat.last_offer.options}
    chat = ConversationDriver()
    chat.gateway.subscriber = None
    assert "Mariama" not in chat("menu")
    offered = [option.id for option in chat.last_offer.options]
    assert offered[0] == "cmd:register"
    assert len(offered) <= 5


def test_person_with_a_hidden_number_gets_a_short_menu():
    chat = ConversationDriver()
    chat.person = msgspec.structs.replace(chat.person, phone=None)
    chat.gateway.subscriber = None
    chat("menu")
    offered = [option.id for option in chat.last_offer.options]
    assert offered[0] == "cmd:register"
    assert len(offered) <= 5


def test_menu_is_shown_while_the_gateway_is_unreachable():
    chat = ConversationDriver()
    chat.gateway.overrides = {
        gateway_requests.FindSubscriber: [GatewayUnreachable(uncertain=False)]
    }
    assert "What would you like" in chat("menu")
    assert "cmd:register" not in {option.id for option in chat.last_offer.options}


def test_more_shows_the_next_page_and_wraps_to_the_first():
    chat = ConversationDriver()
    chat("menu")
    first = chat.last_offer
    chat(OptionChosen(id=first.more.id))
    assert isinstance(chat.replies[-1], OptionList)
    assert chat.replies[-1].start == 9
    chat("more")
    assert chat.replies[-1].start == 18
    chat("more")
    assert chat.replies[-1].start == 0


def test_option_numbers_continue_across_pages():
    chat = ConversationDriver()
    chat("menu")
    number = [option.id for option in chat.last_offer.options].index("cmd:limits") + 1
    assert "Your limits" in chat(str(number))


def test_menu_option_stays_valid_after_other_commands():
    chat = ConversationDriver()
    chat("menu")
    chat("balance")
    chat("help")
    assert "1,000.00 SLE" in chat(OptionChosen(id="cmd:balance"))


@each("command", ["yes", "no", "cancel", "nonsense", ""])
def test_forged_menu_option_is_rejected_as_expired(command):
    chat = ConversationDriver()
    for word in ("send money", "AM-1001", "500"):
        chat(word)
    assert "expired" in chat(OptionChosen(id=f"cmd:{command}"))
    assert chat.conversation.stage == "confirm"


@each("language", ["en", "fr"])
def test_help_mentions_the_pin(language):
    chat = ConversationDriver(language)
    assert "PIN" in chat("help")


def test_language_of_the_first_message_is_saved():
    chat = ConversationDriver(language=None)
    chat(TextMessage(text="solde", intent=Intent(command="balance", language="fr")))
    assert chat.person.language == "fr"
    assert "Votre solde est" in chat.reply_text
    chat(TextMessage(text="balance", intent=Intent(command="balance", language="en")))
    assert "Votre solde est" in chat.reply_text


def test_language_can_be_changed():
    chat = ConversationDriver()
    chat("language")
    assert "continuons en français" in chat.choose_option("fr")
    assert chat.person.language == "fr"
    assert "continuons en français" not in chat(build_text_message("speak english", "language"))
    assert chat.person.language == "en"
    chat("language")
    assert "français" in chat("Français")


def test_support_request_includes_the_phone_number():
    chat = ConversationDriver("fr")
    assert "En quoi notre service client" in chat(build_text_message("humain", "person"))
    assert "J'ai transmis votre message" in chat("Je ne reconnais pas un paiement")
    assert chat.list_requests(gateway_requests.ContactSupport)[0].phone == chat.person.phone


@each(
    "word",
    ["menu", "help", "balance", "send money", "history", "cards", "kyc", "register", "cancel"],
)
@each("earlier_messages", [[], ["AM-1001"], ["AM-1001", "500"], ["AM-1001", "500", "yes"]])
def test_global_keyword_cancels_the_payment_in_any_state(word, earlier_messages):
    chat = ConversationDriver()
    for earlier in ("send money", *earlier_messages):
        chat(earlier)
    reply = chat(word)
    assert "canceled: *Send money*" in reply
    assert chat.conversation.facts.keys().isdisjoint({"amount", "payee"})


def test_ambiguous_text_offers_the_candidate_commands():
    chat = ConversationDriver()
    chat(
        TextMessage(text="card or so", intent=Intent(candidates=("cards", "link", "block", "yes")))
    )
    assert [option.id for option in chat.last_offer.options] == [
        "cmd:cards",
        "cmd:link",
        "cmd:block",
    ]


def test_unrecognized_text_offers_options():
    chat = ConversationDriver()
    assert "didn't understand" in chat("blah")
    assert chat.last_offer is not None


def test_unsolicited_pin_is_neither_echoed_nor_stored():
    chat = ConversationDriver()
    reply = chat(PIN)
    assert "didn't ask" in reply
    assert PIN not in reply
    for word in ("send money", PIN):
        chat(word)
    assert chat.conversation.step == "to"
    assert PIN not in msgspec.json.encode(chat.conversation).decode()


def test_expiry_of_a_conversation_is_announced_once():
    chat = ConversationDriver()
    chat.conversation = Conversation(lapsed=True)
    assert "canceled your request" in chat("balance")
    assert "canceled" not in chat("balance")


@each(
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
)
@each("earlier_messages", [[], ["send money"], ["send money", "AM-1001", "500", "yes"]])
def test_unexpected_event_gets_a_reply_that_does_not_quote_the_pin(event, earlier_messages):
    chat = ConversationDriver()
    for word in earlier_messages:
        chat(word)
    assert chat(event)
    assert PIN not in chat.reply_text


def test_closing_an_unexpected_form_gets_no_reply():
    assert ConversationDriver()(FormClosed()) == ""


def test_interrupted_payment_is_resumed_with_the_same_operation():
    """The executing stage is saved before money moves, so a crash never loses the operation."""
    chat = ConversationDriver()
    for word in ("send money", "AM-1001", "500", "yes"):
        chat(word)
    operation = chat.conversation.operation
    chat.conversation = msgspec.structs.replace(chat.conversation, stage="executing")
    assert "won't be charged twice" in chat("hello?")
    assert chat.conversation.operation == operation
    assert "Done!" in chat(PIN)


def test_number_change_clears_an_interrupted_payment():
    chat = ConversationDriver()
    for word in ("send money", "AM-1001", "500", "yes"):
        chat(word)
    chat.conversation = msgspec.structs.replace(chat.conversation, stage="executing")
    chat(NumberChanged())
    assert not chat.person.trusted
    assert chat.conversation.operation is None


def test_uncertain_payment_is_reported_when_pin_entry_is_unavailable():
    chat = ConversationDriver()
    for word in ("send money", "AM-1001", "500", "yes"):
        chat(word)
    chat.gateway.lost_responses = [gateway_requests.SendMoney]
    chat(PIN)
    chat.settings["pin_entry_mode"] = "none"
    assert "may have gone through" in chat(PIN)


def test_number_change_requires_the_pin_once():
    chat = ConversationDriver()
    for word in ("send money", "AM-1001", "500"):
        chat(word)
    chat(NumberChanged())
    assert not chat.person.trusted
    assert chat.conversation.stage == "idle"
    assert "Mariama" not in chat("menu")
    reply = chat("balance")
    assert "I need your PIN once" in reply
    assert "SLE" not in reply
    assert "1,000.00 SLE" in chat(PIN)
    assert chat.person.trusted
    assert "1,000.00 SLE" in chat("balance")


def test_number_change_requires_the_pin_in_a_form():
    chat = ConversationDriver(pin_entry_mode="form")
    chat(NumberChanged())
    chat("cards")
    assert isinstance(chat.replies[-1], PinRequest)
    assert "TG-0001" in chat.submit_pin_form()


def test_number_change_blocks_access_when_pin_entry_is_unavailable():
    chat = ConversationDriver(pin_entry_mode="none")
    chat(NumberChanged())
    reply = chat("balance")
    assert "isn't safe to share" in reply
    assert "SLE" not in reply


def test_unreachable_gateway_offers_a_retry():
    chat = ConversationDriver()
    chat.gateway.overrides = {"wallet.get_balance": [GatewayUnreachable(uncertain=False)] * 2}
    assert "can't reach the payment service" in chat("balance")
    assert "can't reach the payment service" in chat.choose_option("again")
    assert "1,000.00 SLE" in chat("1")


def test_unregistered_user_is_offered_registration():
    chat = ConversationDriver()
    chat.gateway.subscriber = None
    assert "no wallet" in chat("balance")
    assert chat.conversation.stage == "idle"
    assert "first and last name" in chat.choose_option("cmd:register")


@each("status", ["blocked", "closed"])
def test_inactive_subscriber_is_offered_support(status):
    chat = ConversationDriver()
    chat.gateway.subscriber = msgspec.structs.replace(chat.gateway.subscriber, status=status)
    assert "isn't active" in chat("send money")
    assert "cmd:person" in {option.id for option in chat.last_offer.options}


def test_conversation_survives_a_json_round_trip():
    chat = ConversationDriver()
    for word in ("send money", "AM-1001", "500", "yes"):
        chat(word)
        assert reencode_conversation(chat.conversation) == chat.conversation


@each("command", ["send money", "link a card"])
@each("template", ["pin{}", "PIN:{}", "code-{}"])
def test_pin_is_not_accepted_as_a_card_serial(command, template):
    chat = ConversationDriver()
    chat(command)
    assert "looks like a PIN" in chat(template.format(PIN))
    assert PIN not in chat.reply_text
    assert PIN not in str(chat.conversation)


@each("word", ["mdr", "banane", "voilà", "lol"])
def test_unrecognized_first_word_does_not_set_the_language(word):
    chat = ConversationDriver(None)
    chat(word)
    assert chat.person.language is None
