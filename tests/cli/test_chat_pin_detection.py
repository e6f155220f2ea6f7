"""Detection of PIN prompts in the messenger's texts, in every language."""

from cases import each
from tapgate.cli.chat.pin_detection import asks_for_pin
from tapgate.messenger.model import LANGUAGES, Language
from tapgate.messenger.texts import TEXTS

PIN_PROMPT_KEYS = ("pin.text.pin", "pin.text.new_pin", "pin.text.change_pin", "pin.text.reset_pin")
OTHER_TEXT_KEYS = ("change_pin.done", "pin.unsolicited", "pin.not_as_text", "help")


@each("language", LANGUAGES)
@each("key", PIN_PROMPT_KEYS)
def test_pin_prompts_of_the_messenger_are_detected(language: Language, key: str) -> None:
    assert asks_for_pin(TEXTS[language][key])


@each("language", LANGUAGES)
@each("key", OTHER_TEXT_KEYS)
def test_texts_that_only_mention_a_pin_are_not_prompts(language: Language, key: str) -> None:
    assert not asks_for_pin(TEXTS[language][key])


@each("language", LANGUAGES)
def test_menu_entry_about_changing_the_pin_is_not_a_prompt(language: Language) -> None:
    texts = TEXTS[language]
    assert not asks_for_pin(f"11. {texts['title.change_pin']} - {texts['description.change_pin']}")
