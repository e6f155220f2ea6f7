"""All languages define the same texts, within the channel's length limits."""

import re
import string
from pathlib import Path

from builders.conversation import ConversationDriver
from cases import each
from tapgate.messenger import texts
from tapgate.messenger.conversation import engine
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.commands.common_steps import AMOUNT_ERROR_CODES
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model import COMMANDS, LANGUAGES, Person, RequestRejected
from tapgate_client.errors import Code

SOURCE_DIR = Path(engine.__file__).parent


def list_placeholders(text: str) -> set[str | None]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@each("language", LANGUAGES)
def test_every_language_has_the_same_keys_and_placeholders(language):
    placeholders = [
        {key: list_placeholders(text) for key, text in texts.TEXTS[name].items()}
        for name in ("en", language)
    ]
    assert placeholders[0] == placeholders[1]


def test_every_language_has_one_data_file():
    files = {path.stem for path in Path(texts.__file__).parent.glob("*.toml")}
    assert files == set(LANGUAGES) == texts.TEXTS.keys()


@each("language", LANGUAGES)
def test_bold_markers_are_balanced(language):
    assert [key for key, text in texts.TEXTS[language].items() if text.count("*") % 2] == []


def test_text_fits_its_length_limit():
    wrong = [
        (language, key)
        for language in LANGUAGES
        for key, text in texts.TEXTS[language].items()
        if not 0 < len(text) <= get_max_length(key)
    ]
    assert wrong == []


def get_max_length(key: str) -> int:
    if key.startswith(
        ("title.", "choose", "more", "retry", "confirm.", "pin.button", "code.resend")
    ) or key.startswith(("period.", "send.save_contact", "language.e", "language.f")):
        return 20
    if key.startswith(
        ("description.", "document.description", "block.permanent", "block.temporary")
    ):
        return 72
    if key.startswith(("reason.", "document.", "kyc.finish")):
        return 24
    return 900


#: Client operations, which look like keys.
_OPERATION_PATTERN = re.compile(
    r'(?:client|money)_request\(\s*"[^"]+"|_build_cash_script\("[^"]+", "[^"]+"'
)


def test_every_referenced_key_exists():
    """Keys assembled from parts at run time are not covered."""
    named = set()
    for path in SOURCE_DIR.rglob("*.py"):
        source = _OPERATION_PATTERN.sub("", path.read_text())
        named |= set(re.findall(r'"([a-z_]+(?:\.[A-Za-z_]+)+)"', source))
    named = {name for name in named if not name.startswith("tapgate.")}
    assert named <= texts.TEXTS["en"].keys()


@each("language", LANGUAGES)
def test_every_error_code_has_a_message(language):
    chat = ConversationDriver(language)
    turn = Turn(chat.person, chat.conversation, chat.build_context())
    for code in Code:
        message = turn.render_rejection(RequestRejected(code=code))
        assert message, code
        assert code not in message


def test_amount_error_codes_have_their_own_messages():
    assert {code for code in AMOUNT_ERROR_CODES if not texts.has_text(f"error.{code}")} == set()


def test_every_command_has_a_script():
    assert {*SCRIPTS, "yes", "no", "cancel"} == set(COMMANDS)


def test_rate_limit_reply_states_the_wait_in_the_persons_language():
    person = Person(address="+23276123456", phone=None, language="fr")
    assert "7 secondes" in engine.build_rate_limit_reply(person, 7).text


@each(
    "name, expected",
    [
        ("Aminata", "la carte d'Aminata"),
        ("Émile", "la carte d'Émile"),
        ("Mohamed", "la carte de Mohamed"),
        ("Yusuf", "la carte de Yusuf"),
        ("", "la carte de "),
    ],
)
def test_french_preposition_is_elided_before_a_vowel(name: str, expected: str):
    assert texts.translate("fr", "reset_pin.for.card", name=name) == expected


@each(
    "name, expected",
    [("Aminata K.", "Aminata K. What"), ("Kissy Kiosk", "Kissy Kiosk. What")],
)
def test_abbreviated_name_ends_the_sentence_itself(name: str, expected: str) -> None:
    assert expected in texts.translate("en", "agent.menu", name=name)
