"""Rules over word lists: the files, the matcher and the request to send money."""

import re
from pathlib import Path
from typing import get_args

from cases import each
from tapgate.messenger.model import COMMANDS
from tapgate.messenger.understanding import word_lists, word_patterns
from tapgate.messenger.understanding.normalization import normalize_text
from tapgate.messenger.understanding.word_lists import load_rules

FOLDER = Path(word_lists.__file__).parent
LANGUAGES = ("en", "fr", "kri")
PATTERN_MODULES = ("word_patterns", "wishes")


def read_lists(file_name: str) -> dict[str, list[str]]:
    return dict(word_lists.read_entries(FOLDER / file_name))


def test_rules_name_commands_and_never_only_a_money_command() -> None:
    for rule in load_rules("rules.txt"):
        commands = rule.name.split()
        assert set(commands) <= set(COMMANDS), rule.name
        assert not {"yes", "no"} & set(commands)
        assert commands != ["send"]
    found = set(get_args(word_patterns.SmallTalk))
    assert {rule.name for rule in load_rules("small_talk.txt")} <= found


def test_every_exception_belongs_to_a_rule() -> None:
    for file_name in ("rules.txt", "small_talk.txt", "corrections.txt"):
        names = set(read_lists(file_name))
        assert {name.removesuffix(" unless") for name in names} <= names


def test_every_word_list_is_used_and_has_english_words() -> None:
    used = {
        name
        for file_name in ("rules.txt", "small_talk.txt", "corrections.txt")
        for items in read_lists(file_name).values()
        for name in re.split("[ /]", " ".join(items))
    }
    source = "".join((FOLDER / f"{name}.py").read_text("utf-8") for name in PATTERN_MODULES)
    used |= set(re.findall(r"\{([a-z]\w*)\}", source))
    used |= {"currency", "doubt", "report"}  # in rules that the modules compile
    english = set(read_lists("words/en.txt"))
    assert english == used - {"number"}
    for language in LANGUAGES:
        assert set(read_lists(f"words/{language}.txt")) <= english


@each("language", LANGUAGES)
def test_word_lists_are_sorted_and_without_duplicates(language: str) -> None:
    entries = list(word_lists.read_entries(FOLDER / f"words/{language}.txt"))
    names = [name for name, _ in entries]
    assert names == sorted(set(names))
    for name, items in entries:
        assert all(map(normalize_text, items)), name
        assert len(items) == len(set(items)), name


@each(
    "text, commands",
    [
        ("i lost my card", ("block",)),
        ("my card, the one here, is stolen", ("block",)),
        ("card one two three four five six lost", ()),  # too far apart
        ("lost", ()),
        ("i undo the lost card", ()),  # an exception
        ("una de diklayn mi kad", ("declined",)),
        ("dɛn dɔn rifyuz am", ("declined",)),
        ("a wan ad 500 leones", ("add_money",)),
        ("je veux débloquer ça", ("unblock",)),  # the list has "débloqu*"
        ("wusay a kin widro", ("nearest_agent", "withdraw")),
        ("what a discard", ()),  # only whole words match
    ],
)
def test_words_select_a_rule(text: str, commands: tuple[str, ...]) -> None:
    assert word_patterns.match_rules(normalize_text(text)) == commands


@each(
    "text, request",
    [
        ("i want to send 50 to fatu", "send # to fatu"),
        ("I'd like to pay my sister 75", "pay my sister #"),
        ("can you transfer 300 to 077555444", "transfer # to #"),
        ("j'ai besoin d'envoyer 100 à Moussa", "envoyer # a mousa"),
        ("a wan fɔ sɛn 50 to mi sista", "sen # to mi sista"),
        ("i sent 50 to fatu", None),
        ("i dont want to send 50", None),
        ("my boss wants me to send 50", None),
        ("can i send 50", None),
    ],
)
def test_request_to_send_money_starts_with_a_wish_or_a_verb(text: str, request: str | None) -> None:
    assert word_patterns.extract_transfer_wish(normalize_text(text)) == request


@each(
    "text, expected",
    [
        ("bonjour mon solde svp", "mon solde"),
        ("kushe duya mi balans tɛnki", "mi balans"),
        ("good morning please block it thank you", "block it"),
        ("thank you my brother", "thank you my brother"),
        ("bonjour", "bonjour"),
    ],
)
def test_courtesies_around_a_text_are_removed(text: str, expected: str) -> None:
    assert word_patterns.strip_courtesies(normalize_text(text)) == expected
