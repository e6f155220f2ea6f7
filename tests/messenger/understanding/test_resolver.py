"""Intent resolution, measured on labeled texts and by cross-validating the phrases."""

import random
from collections import Counter
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from messenger.understanding.samples import SAMPLES
from tapgate.messenger.model import COMMANDS, Command, Intent, Language
from tapgate.messenger.understanding import phrases
from tapgate.messenger.understanding.normalization import MAX_LENGTH, normalize_text
from tapgate.messenger.understanding.resolver import Resolver, match_literal, resolve
from tapgate.messenger.understanding.word_patterns import classify_small_talk

MONEY_COMMANDS = {"send", "yes"}


def classify_outcome(intent: Intent, expected: frozenset[str]) -> str:
    if intent.command is not None:
        return "right" if intent.command in expected else "wrong"
    if expected == {"none"}:
        return "asked" if intent.candidates else "right"
    return "asked" if expected.intersection(intent.candidates) else "missed"


def is_wrong_money_command(intent: Intent, expected: frozenset[str]) -> bool:
    return intent.command in MONEY_COMMANDS and intent.command not in expected


def test_labeled_texts_meet_the_accuracy_thresholds(capsys: pytest.CaptureFixture[str]) -> None:
    results = [(resolve(text, None), expected) for text, expected in SAMPLES]
    counts = Counter(classify_outcome(intent, expected) for intent, expected in results)
    money = sum(is_wrong_money_command(resolved, expected) for resolved, expected in results)
    with capsys.disabled():
        print(f"\nlabeled texts ({len(SAMPLES)}): {dict(counts)}, wrong money actions: {money}")
    assert money == 0
    assert counts["right"] >= 0.84 * len(SAMPLES)
    assert counts["wrong"] <= 0.02 * len(SAMPLES)
    assert counts["missed"] <= 0.02 * len(SAMPLES)


def test_labeled_texts_are_numerous_and_mostly_not_phrases() -> None:
    known = {normalize_text(phrase.text) for phrase in (*phrases.KEYWORDS, *phrases.SAMPLES)}
    copied = [
        text
        for text, expected in SAMPLES
        if normalize_text(text) in known and not expected & {"yes", "no"}
    ]
    assert len(SAMPLES) >= 120
    # Short texts inevitably coincide with phrases: "STOP!!", "hellooo!!".
    assert len(copied) <= 0.08 * len(SAMPLES)


def test_left_out_phrases_meet_the_accuracy_thresholds(capsys: pytest.CaptureFixture[str]) -> None:
    """Cross-validate the sample phrases in five folds."""
    samples = list(phrases.SAMPLES)
    random.Random(7).shuffle(samples)
    commands_by_text: dict[str, set[str]] = {}
    for phrase in (*phrases.KEYWORDS, *samples):
        commands_by_text.setdefault(normalize_text(phrase.text), set()).add(
            phrase.command or "none"
        )
    counts, money = Counter[str](), 0
    for fold in range(5):
        held_out = {normalize_text(phrase.text) for phrase in samples[fold::5]}
        resolver = Resolver(
            [phrase for phrase in phrases.KEYWORDS if normalize_text(phrase.text) not in held_out],
            [phrase for phrase in samples if normalize_text(phrase.text) not in held_out],
        )
        for phrase in samples[fold::5]:
            intent = resolver.resolve(phrase.text, None)
            expected = frozenset(commands_by_text[normalize_text(phrase.text)])
            counts[classify_outcome(intent, expected)] += 1
            money += is_wrong_money_command(intent, expected)
    total = counts.total()
    with capsys.disabled():
        print(f"\nleft-out phrases ({total}): {dict(counts)}, wrong money actions: {money}")
    assert money <= 0.003 * total
    assert counts["right"] >= 0.57 * total
    assert counts["wrong"] <= 0.07 * total


@each(
    "text, command",
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
def test_keyword_resolves_to_its_command_in_any_language(text: str, command: str) -> None:
    for language in (None, "en", "fr"):
        assert resolve(text, language).command == command


@each(
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
def test_text_does_not_resolve_to_a_money_command(text: str) -> None:
    assert resolve(text.strip(), None).command not in MONEY_COMMANDS


def test_truncated_text_does_not_resolve_to_a_command() -> None:
    for word in ("yes", "send money"):
        assert resolve(word + " " * MAX_LENGTH + "? no, do not", None).command is None


@each("text", ["yes 不要", "yes нет", "لا yes", "yes 200", "yes №"])
def test_yes_with_a_number_or_another_script_does_not_resolve_to_a_command(text: str) -> None:
    assert resolve(text, None).command is None


@each(
    "text",
    ["I do not want to send money", "please don't send 500", "je ne veux pas envoyer d'argent"],
)
def test_negated_transfer_resolves_to_cancel_or_no(text: str) -> None:
    assert resolve(text, None).command in {"cancel", "no"}


def test_courtesies_around_a_command_are_ignored() -> None:
    assert resolve("Bonjour, mon solde svp", None).command == "balance"
    assert resolve("Good morning please block my card", None).command == "block"
    assert resolve("Hello, yes", None).command != "yes"


def test_language_of_the_text_is_detected() -> None:
    assert resolve("mon solde", "en").language == "fr"
    assert resolve("my balance", "fr").language == "en"
    assert resolve("menu", None).language is None
    assert resolve("menu", "fr").language == "fr"
    assert resolve("je voudrais connaitre mon solde actuel", None).language == "fr"


def test_forgotten_pin_is_not_a_pin_change() -> None:
    for text in ("i forgot my pin", "reset pin", "j'ai oublié mon code", "forgot pin"):
        assert resolve(text, None).command == "reset_pin"
    assert resolve("new pin", None).command == "change_pin"


def test_phrases_of_yes_no_and_send_belong_to_one_command() -> None:
    commands_by_text: dict[str, set[Command | None]] = {}
    for phrase in (*phrases.KEYWORDS, *phrases.SAMPLES):
        commands_by_text.setdefault(normalize_text(phrase.text), set()).add(phrase.command)
    for text, commands in commands_by_text.items():
        assert text
        if commands & {"yes", "no", "send"}:
            assert len(commands) == 1, text


@given(st.text(max_size=200))
def test_arbitrary_text_resolves_without_guessing_yes_or_no(text: str) -> None:
    intent = resolve(text, None)
    assert len(intent.candidates) <= 3
    assert not {"yes", "no"} & set(intent.candidates)
    if intent.command in {"yes", "no"}:
        assert match_literal(text, None) == intent


@given(st.sampled_from([text for text, _ in SAMPLES]), st.sampled_from(["!", " 😀", " ", "..."]))
def test_trailing_punctuation_and_emoji_are_ignored(text: str, decoration: str) -> None:
    assert resolve(text + decoration, None) == resolve(text, None)


@each("unit", ["a", "ﷺ", "é́́́", "yes ", "1 ", "#", "'", "\u200b", "send money "])
def test_long_text_is_truncated(unit: str) -> None:
    assert len(normalize_text(unit * 4096)) <= MAX_LENGTH
    assert resolve(unit * 4096, None).command is None


def test_every_command_has_keywords_in_both_languages() -> None:
    for language in ("en", "fr"):
        for command in COMMANDS:
            own = [p for p in phrases.KEYWORDS if (p.command, p.language) == (command, language)]
            assert own, (language, command)
            assert resolve(own[0].text, language).command == cast(Command, command)


@each(
    "word", ["lol", "hmm", "mdr", "banane", "qwerty", "Aminata", "voilà", "1x", "wow", "asdf", "Bo"]
)
def test_unrecognized_word_has_no_language(word: str) -> None:
    for known in (None, "en", "fr"):
        assert resolve(word, cast("Language | None", known)).language is None


@each(
    "word, language",
    [("bonjour", "fr"), ("merci", "fr"), ("solde", "fr"), ("hello", "en"), ("balanse", "en")],
)
def test_known_word_has_its_language(word: str, language: str) -> None:
    assert resolve(word, None).language == language


def test_random_words_have_no_language() -> None:
    rng = random.Random(1)
    letters = "bcdfghjklmnpqrstvwz" + "aeiou" * 3
    words = ["".join(rng.choices(letters, k=rng.randint(5, 10))) for _ in range(2000)]
    assert [word for word in words if resolve(word, None).language] == []


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
