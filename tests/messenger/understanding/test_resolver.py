"""What free text asks for, measured on labelled texts and across the phrases themselves."""

import random
from collections import Counter
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messenger.understanding.samples import SAMPLES
from tapgate.messenger.model.common import COMMANDS, Command, Language
from tapgate.messenger.model.events import Intent
from tapgate.messenger.understanding import phrases
from tapgate.messenger.understanding.normalization import MAX_LENGTH, normalize_text
from tapgate.messenger.understanding.resolver import Resolver, match_literal, resolve

MONEY_COMMANDS = {"send", "yes"}


def classify_outcome(meaning: Intent, right: frozenset[str]) -> str:
    if meaning.command is not None:
        return "right" if meaning.command in right else "wrong"
    if right == {"none"}:
        return "asked" if meaning.candidates else "right"
    return "asked" if right.intersection(meaning.candidates) else "missed"


def is_wrong_money_command(meaning: Intent, right: frozenset[str]) -> bool:
    return meaning.command in MONEY_COMMANDS and meaning.command not in right


def test_labelled_texts(capsys: pytest.CaptureFixture[str]) -> None:
    found = [(resolve(text, None), right) for text, right in SAMPLES]
    counts = Counter(classify_outcome(meaning, right) for meaning, right in found)
    money = sum(is_wrong_money_command(meaning, right) for meaning, right in found)
    with capsys.disabled():
        print(f"\nlabelled texts ({len(SAMPLES)}): {dict(counts)}, wrong money actions: {money}")
    assert money == 0
    assert counts["right"] >= 0.84 * len(SAMPLES)
    assert counts["wrong"] <= 0.02 * len(SAMPLES)
    assert counts["missed"] <= 0.02 * len(SAMPLES)


def test_labelled_texts_are_many_and_mostly_not_phrases() -> None:
    known = {normalize_text(phrase.text) for phrase in (*phrases.KEYWORDS, *phrases.SAMPLES)}
    copied = [
        text
        for text, right in SAMPLES
        if normalize_text(text) in known and not right & {"yes", "no"}
    ]
    assert len(SAMPLES) >= 120
    # Short ones cannot but be the same: "STOP!!", "hellooo!!".
    assert len(copied) <= 0.08 * len(SAMPLES)


def test_phrases_that_were_left_out_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    """Five times a fifth of the sample phrases is kept from the resolver, then asked."""
    samples = list(phrases.SAMPLES)
    random.Random(7).shuffle(samples)
    meant: dict[str, set[str]] = {}
    for phrase in (*phrases.KEYWORDS, *samples):
        meant.setdefault(normalize_text(phrase.text), set()).add(phrase.command or "none")
    counts, money = Counter[str](), 0
    for fold in range(5):
        held = {normalize_text(phrase.text) for phrase in samples[fold::5]}
        known = Resolver(
            [phrase for phrase in phrases.KEYWORDS if normalize_text(phrase.text) not in held],
            [phrase for phrase in samples if normalize_text(phrase.text) not in held],
        )
        for phrase in samples[fold::5]:
            meaning = known.resolve(phrase.text, None)
            right = frozenset(meant[normalize_text(phrase.text)])
            counts[classify_outcome(meaning, right)] += 1
            money += is_wrong_money_command(meaning, right)
    total = counts.total()
    with capsys.disabled():
        print(f"\nleft-out phrases ({total}): {dict(counts)}, wrong money actions: {money}")
    assert money <= 0.003 * total
    assert counts["right"] >= 0.57 * total
    assert counts["wrong"] <= 0.07 * total


@pytest.mark.parametrize(
    ("text", "command"),
    [
        *((word, word) for word in "menu help balance history cards kyc register".split()),
        *((word, word) for word in "yes no cancel".split()),
        ("send money", "send"),
        ("SEND MONEY!!", "send"),
        ("Envoyer de l’argent", "send"),
        ("oui", "yes"),
        ("D'ACCORD.", "yes"),
        ("non", "no"),
        ("Annuler", "cancel"),
        ("Arrête !", "cancel"),
        ("solde", "balance"),
        ("aide 🙏", "help"),
        ("Bonjour", "menu"),
        ("ＭＥＮＵ", "menu"),
        ("blnce", "balance"),
        ("snd mony", "send"),
        ("don't send", "cancel"),
        ("relevé", "statement"),
    ],
)
def test_words_work_as_they_are(text: str, command: str) -> None:
    for language in (None, "en", "fr"):
        assert resolve(text, language).command == command


@pytest.mark.parametrize(
    "text",
    """yesterday
    yes but change the amount
    yes but only 200
    yes?
    ok?
    did you send it?
    block my card, someone will send money
    i did not receive money
    don't send 500 to 076123456
    please do not send the 500
    my brother said he will send money
    i already sent 500 to 076123456
    why was 500 sent to 076123456
    send me 500
    send me my statement
    send my passport
    who should i send money to
    eyes
    oui mais pas maintenant
    n'envoie pas 500 à mon frère
    je ne veux pas envoyer 500
    j'ai envoyé 500 hier
    as-tu envoyé 500 à ma soeur ?
    envoie-moi de l'argent
    envoyez-moi mon relevé
    vraiment
    il va envoyer 500
    est-ce que tu as transféré l'argent
    10
    12345
    076123456
    CARD-9""".splitlines(),
)
def test_no_money_action_for(text: str) -> None:
    assert resolve(text.strip(), None).command not in MONEY_COMMANDS


def test_a_yes_hidden_at_the_end_of_a_cut_is_none() -> None:
    for word in ("yes", "send money"):
        assert resolve(word + " " * MAX_LENGTH + "? no, do not", None).command is None


@pytest.mark.parametrize("text", ["yes 不要", "yes нет", "لا yes", "yes 200", "yes №"])
def test_a_yes_with_something_that_cannot_be_read_is_none(text: str) -> None:
    assert resolve(text, None).command is None


@pytest.mark.parametrize(
    "text",
    ["I do not want to send money", "please don't send 500", "je ne veux pas envoyer d'argent"],
)
def test_a_transfer_that_is_not_wanted(text: str) -> None:
    assert resolve(text, None).command in {"cancel", "no"}


def test_civilities_do_not_count() -> None:
    assert resolve("Bonjour, mon solde svp", None).command == "balance"
    assert resolve("Good morning please block my card", None).command == "block"
    assert resolve("Hello, yes", None).command != "yes"


def test_language_of_the_words() -> None:
    assert resolve("mon solde", "en").language == "fr"
    assert resolve("my balance", "fr").language == "en"
    assert resolve("menu", None).language is None
    assert resolve("menu", "fr").language == "fr"
    assert resolve("je voudrais connaitre mon solde actuel", None).language == "fr"


def test_what_two_commands_have_is_asked() -> None:
    assert set(resolve("i forgot my pin", None).candidates) == {"change_pin", "person"}


def test_yes_and_no_are_nobody_elses_and_never_likely() -> None:
    meanings: dict[str, set[Command | None]] = {}
    for phrase in (*phrases.KEYWORDS, *phrases.SAMPLES):
        meanings.setdefault(normalize_text(phrase.text), set()).add(phrase.command)
    for text, commands in meanings.items():
        assert text
        if commands & {"yes", "no", "send"}:
            assert len(commands) == 1, text


@given(st.text(max_size=200))
def test_any_text_is_answered(text: str) -> None:
    meaning = resolve(text, None)
    assert len(meaning.candidates) <= 3
    assert not {"yes", "no"} & set(meaning.candidates)
    if meaning.command in {"yes", "no"}:
        assert match_literal(text, None) == meaning


@given(st.sampled_from([text for text, _ in SAMPLES]), st.sampled_from(["!", " 😀", " ", "..."]))
def test_decoration_does_not_count(text: str, decoration: str) -> None:
    assert resolve(text + decoration, None) == resolve(text, None)


@pytest.mark.parametrize("sign", ["a", "ﷺ", "é́́́", "yes ", "1 ", "#", "'", "\u200b", "send money "])
def test_long_texts_are_cut(sign: str) -> None:
    assert len(normalize_text(sign * 4096)) <= MAX_LENGTH
    assert resolve(sign * 4096, None).command is None


def test_every_command_has_words_in_both_languages() -> None:
    for language in ("en", "fr"):
        for command in COMMANDS:
            own = [p for p in phrases.KEYWORDS if (p.command, p.language) == (command, language)]
            assert own, (language, command)
            assert resolve(own[0].text, language).command == cast(Command, command)


@pytest.mark.parametrize(
    "word", ["lol", "hmm", "mdr", "banane", "qwerty", "Aminata", "voilà", "1x", "wow", "asdf", "Bo"]
)
def test_a_meaningless_word_tells_no_language(word: str) -> None:
    for known in (None, "en", "fr"):
        assert resolve(word, cast("Language | None", known)).language is None


@pytest.mark.parametrize(
    ("word", "language"),
    [("bonjour", "fr"), ("merci", "fr"), ("solde", "fr"), ("hello", "en"), ("balanse", "en")],
)
def test_a_known_word_tells_its_language(word: str, language: str) -> None:
    assert resolve(word, None).language == language


def test_random_words_tell_no_language() -> None:
    chance = random.Random(1)
    letters = "bcdfghjklmnpqrstvwz" + "aeiou" * 3
    words = ["".join(chance.choices(letters, k=chance.randint(5, 10))) for _ in range(2000)]
    assert [word for word in words if resolve(word, None).language] == []
