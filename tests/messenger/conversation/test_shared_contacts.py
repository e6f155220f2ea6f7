"""Contacts and places that a person shares."""

from builders.conversation import CARDLESS_PHONE, PAYEE_PHONE, ConversationDriver
from cases import each
from tapgate.messenger.model import ContactsShared, PlaceShared, SharedContact
from tapgate.messenger.understanding.places import find_town, parse_address


def share_contact(*phones: str) -> ContactsShared:
    return ContactsShared(contacts=(SharedContact(name="Aminata", phones=phones),))


@each("phone", [PAYEE_PHONE, "076 222 222", "+232 76 222-222"])
def test_shared_contact_answers_who_gets_the_money(phone):
    chat = ConversationDriver()
    chat("send money")
    chat(share_contact(phone))
    assert chat.conversation.facts["to"] == f"phone:{PAYEE_PHONE}"
    assert chat.conversation.step == "amount"


def test_shared_contact_starts_a_transfer():
    chat = ConversationDriver()
    assert "How much would you like to send to Aminata K." in chat(share_contact(PAYEE_PHONE))


def test_contact_with_several_numbers_is_not_guessed():
    chat = ConversationDriver()
    chat("send money")
    assert "several numbers" in chat(share_contact(PAYEE_PHONE, CARDLESS_PHONE))
    assert chat.conversation.step == "to"


def test_contact_without_a_usable_number_and_at_other_questions_is_not_taken():
    chat = ConversationDriver()
    assert "only read text" in chat(share_contact("n/a"))
    chat(f"send 50 to {PAYEE_PHONE}")
    chat.choose_option("no")
    chat("statement")
    assert "only read text" in chat(share_contact(CARDLESS_PHONE))
    assert chat.conversation.command == "statement"


@each(
    "place",
    [
        PlaceShared(latitude=7.96, longitude=-11.74),
        PlaceShared(latitude=5.6, longitude=-0.2, address="5 Main Street, Bo, Sierra Leone"),
    ],
)
def test_shared_place_answers_where_to_find_an_agent(place):
    chat = ConversationDriver()
    chat("find an agent")
    assert "Kargbo Shop" in chat(place)
    assert "Kargbo Shop" in ConversationDriver()(place)


def test_place_far_from_every_town_asks_for_the_town():
    chat = ConversationDriver()
    chat("find an agent")
    assert "name of your district or town" in chat(PlaceShared(latitude=0, longitude=0))
    assert chat.conversation.step == "place"


def test_place_at_another_question_is_not_taken():
    chat = ConversationDriver()
    chat("send money")
    assert "only read text" in chat(PlaceShared(latitude=7.96, longitude=-11.74))


def test_town_is_the_closest_one():
    assert find_town(8.48, -13.23) == "Freetown"
    assert find_town(7.88, -11.19) == "Kenema"
    assert find_town(51.5, -0.1) is None
    assert parse_address("12 Main Street, Kumasi, Ghana") == "Kumasi"
    assert parse_address("") is None
