"""Transcripts contain a conversation's last messages, without secrets."""

from builders.conversation import CODE, PIN
from cases import each
from tapgate.core.vault import Vault
from tapgate.messenger import transcript
from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.model import (
    DocumentReply,
    Event,
    FormSubmitted,
    Option,
    OptionChosen,
    OptionList,
    TextMessage,
    TextReply,
)

OFFER = OptionList(
    text="Which?",
    options=(Option(id="a#1", title="The first"),),
    button="Choose",
    more=Option(id="more#1", title="More"),
)


def add(event: Event, **state: object) -> transcript.Transcript:
    replies = (TextReply(text="Hello\nyou"), DocumentReply(link="l", filename="f", caption="c"))
    conversation = Conversation(**state)  # type: ignore[arg-type]
    return transcript.add_turn((), conversation, event, replies)


def test_texts_choices_and_replies_are_kept() -> None:
    assert add(TextMessage(text="I paid 20 twice")) == (
        "Customer: I paid 20 twice",
        "Chat: Hello you",
    )
    assert add(OptionChosen(id="a#1"), offer=OFFER)[0] == "Customer: The first"


@each(
    "event, state",
    [
        (TextMessage(text=PIN), {}),
        (TextMessage(text=f"my pin is {PIN}"), {}),
        (TextMessage(text=CODE), {}),
        (TextMessage(text=f"{CODE[:3]} {CODE[3:]}"), {}),
        (TextMessage(text="anything"), {"stage": "await_pin"}),
        (TextMessage(text=None), {}),
        (FormSubmitted(operation="op", pin=PIN), {}),
        (OptionChosen(id="b#1"), {"offer": OFFER}),
    ],
)
def test_possible_secrets_are_left_out(event: Event, state: dict[str, object]) -> None:
    assert add(event, **state) == ("Chat: Hello you",)


def test_long_numbers_of_the_customer_are_masked() -> None:
    assert add(TextMessage(text=f"got {CODE} here"))[0] == "Customer: got … here"


def test_links_are_masked() -> None:
    reply = TextReply(text="Your statement: https://pay.example/api/v1/statements/token")
    lines = transcript.add_turn((), Conversation(), TextMessage(text="statement"), (reply,))
    assert lines == ("Customer: statement", "Chat: Your statement: …")


def test_transcript_is_short_and_sealed() -> None:
    vault, lines = Vault("a secret key for the tests of transcripts"), ()
    for number in range(20):
        event = TextMessage(text=f"word {number} " + "x" * 500)
        lines = transcript.add_turn(lines, Conversation(), event, ())
    assert len(lines) == transcript.MAX_LINES and max(map(len, lines)) < 320
    sealed = transcript.seal(vault, "+23276000001", lines)
    assert b"word" not in sealed
    assert transcript.open_sealed(vault, "+23276000001", sealed) == lines
    assert transcript.open_sealed(vault, "+23276000002", sealed) == ()
    assert transcript.open_sealed(vault, "+23276000001", None) == ()
