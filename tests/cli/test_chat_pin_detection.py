"""What is typed is hidden exactly where the messenger asks for a PIN."""

import pytest

from tapgate.cli.chat.pin_detection import asks_for_pin
from tapgate.messenger.conversation.texts import TEXTS
from tapgate.messenger.model.common import LANGUAGES, Language

PIN_PROMPT_KEYS = ("pin.text.pin", "pin.text.new_pin", "pin.text.change_pin")
OTHER_TEXT_KEYS = ("change_pin.done", "pin.unasked", "pin.not_as_text", "help")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("key", PIN_PROMPT_KEYS)
def test_a_question_for_a_pin(language: Language, key: str) -> None:
    assert asks_for_pin(TEXTS[language][key])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("key", OTHER_TEXT_KEYS)
def test_words_about_a_pin(language: Language, key: str) -> None:
    assert not asks_for_pin(TEXTS[language][key])


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_menu_with_a_new_pin_in_it(language: Language) -> None:
    words = TEXTS[language]
    assert not asks_for_pin(f"11. {words['title.change_pin']} - {words['about.change_pin']}")
