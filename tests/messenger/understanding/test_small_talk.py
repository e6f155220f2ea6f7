"""Classification of messages that are not commands."""

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tapgate.messenger.understanding.small_talk import classify_small_talk


@each(
    "text, expected",
    [
        ("Hello!", "greeting"),
        ("bonsoir", "greeting"),
        ("thanks", "thanks"),
        ("Thank you very much 🙏", "thanks"),
        ("merci beaucoup", "thanks"),
        ("ok", "farewell"),
        ("Au revoir !", "farewell"),
        ("no thanks", "farewell"),
        ("I forgot my PIN", "forgotten_pin"),
        ("lost my pin", "forgotten_pin"),
        ("reset pin", "forgotten_pin"),
        ("pin reset", "forgotten_pin"),
        ("what's my pin?", "forgotten_pin"),
        ("i cannot remember my code", "forgotten_pin"),
        ("mot de passe oublié", "forgotten_pin"),
        ("je ne me rappelle plus de mon code", "forgotten_pin"),
        ("cancel my last payment", "take_back"),
        ("cancel the payment i made yesterday", "take_back"),
        ("annuler le paiement que j'ai fait", "take_back"),
        ("annuler le dernier transfert", "take_back"),
        ("someone stole my phone", "lost_phone"),
        ("j'ai perdu mon téléphone", "lost_phone"),
        ("fees", "fees"),
        ("what is the charge for sending", "fees"),
        ("combien coûte un transfert", "fees"),
    ],
)
def test_small_talk_is_classified(text: str, expected: str) -> None:
    assert classify_small_talk(text) == expected


@each(
    "text",
    """yes
    menu
    cancel
    cancel the payment
    stop the transfer
    thank you but send 500
    thanks send money
    change my pin
    i want a new pin
    my card was stolen
    i lost my card and my pin
    resend the code
    thief took my phone and my card
    my phone number
    send 500 to 076123456
    my balance
    you charged me two times
    """.splitlines(),
)
def test_other_text_is_not_classified_as_small_talk(text: str) -> None:
    assert classify_small_talk(text.strip()) is None


@given(st.text(max_size=400))
def test_arbitrary_text_is_classified_without_error(text: str) -> None:
    classify_small_talk(text)
