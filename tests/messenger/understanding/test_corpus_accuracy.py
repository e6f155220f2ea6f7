"""Whole-engine accuracy on the sentence corpus, with a part that stays held out.

`corpus/` has one file per language. A section `[intent]` lists sentences with their expected slots:
`sentence | amount=200 to=+23276123987`. A digest of the sentence decides whether it belongs to the
development part or to the held-out part. Run the file to print the report by language and intent
and the mistakes in the development part. Mistakes in the held-out part are only counted.
"""

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from builders.conversation import PHONE, ConversationDriver
from cases import each
from tapgate.messenger import texts
from tapgate.messenger.conversation import engine
from tapgate.messenger.conversation.state import Conversation, EngineOutput
from tapgate.messenger.model import Language, OptionList, Person, TextMessage
from tapgate.messenger.understanding import resolver

FOLDER: Final = Path(__file__).with_name("corpus")
CORPUS_LANGUAGES: Final = ("en", "fr", "kri")
MIN_ACCURACY: Final = 0.9

Part = Literal["development", "held-out"]
PARTS: Final[tuple[Part, ...]] = ("development", "held-out")
Outcome = Literal["right", "asked", "nothing", "wrong", "wrong money"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("right", "asked", "nothing", "wrong", "wrong money")
#: Reply keys that answer an intent without a command in progress.
_REPLY_INTENTS: Final = {"nothing_to_cancel": "cancel", "goodbye": "none", "thanks": "none"}
_NOT_UNDERSTOOD: Final = "not_understood"
_SUGGESTIONS: Final = frozenset({"did_you_mean", "did_you_mean.one"})
#: Intents that another answer serves as well: small talk gets a greeting, a goodbye or the menu.
_ALSO_RIGHT: Final = {"none": {"menu", _NOT_UNDERSTOOD}, "help": {"menu"}, "cancel": {"none"}}


class Sentence(NamedTuple):
    language: str
    text: str
    #: Each alternative is a sequence of commands: one for each wish.
    intents: tuple[str, ...]
    slots: dict[str, str]

    @property
    def part(self) -> Part:
        return "held-out" if hashlib.sha256(self.text.encode()).digest()[0] % 2 else "development"


class Reading(NamedTuple):
    intent: str | None
    slots: dict[str, str]
    suggested: frozenset[str] = frozenset()


def load_corpus() -> list[Sentence]:
    return [sentence for language in CORPUS_LANGUAGES for sentence in _load(language)]


def _load(language: str) -> Iterator[Sentence]:
    intent = ""
    for line in (FOLDER / f"{language}.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            intent = line[1:-1]
            continue
        text, _, rest = line.partition(" | ")
        slots = dict(item.split("=", 1) for item in rest.split())
        yield Sentence(language, text, tuple(slots.pop("intent", intent).split("/")), slots)


def answer(sentence: Sentence) -> Reading:
    """Return the engine's answer to a sentence in an idle conversation."""
    language: Language = "fr" if sentence.language == "fr" else "en"
    person = Person(address=PHONE, phone=PHONE, language=language)
    event = TextMessage(text=sentence.text, intent=resolver.resolve(sentence.text, language))
    context = ConversationDriver().build_context()
    output = engine.process_event(person, Conversation(), event, context)
    if output.conversation.command is not None:
        return Reading(_name_commands(output), _read_slots(output))
    keys = _list_reply_keys(output)
    last = output.replies[-1]
    if keys & _SUGGESTIONS and isinstance(last, OptionList):
        return Reading(None, {}, frozenset(o.id.removeprefix("cmd:") for o in last.options))
    if _NOT_UNDERSTOOD in keys:
        return Reading(_NOT_UNDERSTOOD, {})
    named = next((_REPLY_INTENTS[key] for key in keys if key in _REPLY_INTENTS), None)
    return Reading(named or output.command or _find_command(keys), {})


def _name_commands(output: EngineOutput) -> str:
    conversation = output.conversation
    later = conversation.later
    return f"{conversation.command}+{later.command}" if later else str(conversation.command)


def _read_slots(output: EngineOutput) -> dict[str, str]:
    later = output.conversation.later
    facts = output.conversation.facts | (later.facts if later else {})
    payee = facts["to"].partition(":")[2] if "to" in facts else facts.get("unknown")
    return {
        name: value
        for name, value in (
            ("amount", facts.get("amount")),
            ("to", payee),
            ("place", facts.get("place")),
        )
        if value is not None
    }


def _list_reply_keys(output: EngineOutput) -> set[str]:
    catalog = texts.TEXTS[output.person.language or "en"]
    shown = {reply.text for reply in output.replies if hasattr(reply, "text")}
    return {key for key, text in catalog.items() if text in shown}


def _find_command(keys: set[str]) -> str | None:
    return next((key.partition(".")[0] for key in sorted(keys)), None)


def classify(sentence: Sentence) -> Outcome:
    found = answer(sentence)
    accepted = {*sentence.intents}.union(*(_ALSO_RIGHT.get(i, ()) for i in sentence.intents))
    is_expected = found.intent in accepted
    wrong_slots = any(
        name in found.slots and found.slots[name].casefold() != value.casefold()
        for name, value in sentence.slots.items()
    )
    if found.intent and "send" in found.intent.split("+") and (not is_expected or wrong_slots):
        return "wrong money"
    if is_expected:
        return "right" if sentence.slots.items() <= _fold(found.slots, sentence) else "asked"
    if found.intent in (None, _NOT_UNDERSTOOD):
        return "asked" if found.suggested & accepted else "nothing"
    return "wrong"


def _fold(slots: dict[str, str], sentence: Sentence) -> set[tuple[str, str]]:
    """Return the slots, with the corpus's spelling where only the case differs."""
    return {
        (name, sentence.slots[name])
        for name, value in slots.items()
        if name in sentence.slots and value.casefold() == sentence.slots[name].casefold()
    }


def count_outcomes(part: Part) -> dict[tuple[str, str], Counter[Outcome]]:
    """Return the outcomes by language and intent."""
    counts: dict[tuple[str, str], Counter[Outcome]] = {}
    for sentence in load_corpus():
        if sentence.part == part:
            group = (sentence.language, sentence.intents[0])
            counts.setdefault(group, Counter())[classify(sentence)] += 1
    return counts


def total_by_language(counts: dict[tuple[str, str], Counter[Outcome]]) -> dict[str, Counter[str]]:
    totals: dict[str, Counter[str]] = {language: Counter() for language in CORPUS_LANGUAGES}
    for (language, _), outcomes in counts.items():
        totals[language].update(outcomes)
    return totals


def test_corpus_is_large_unique_and_split_evenly() -> None:
    corpus = load_corpus()
    assert len({sentence.text for sentence in corpus}) == len(corpus) >= 400
    for language in CORPUS_LANGUAGES:
        parts = Counter(s.part for s in corpus if s.language == language)
        assert min(parts.values()) >= 70


@each("part", PARTS)
def test_corpus_part_is_understood_without_a_wrong_money_intent(
    part: Part, record_property: Callable[[str, object], None]
) -> None:
    """Only counts are shown, so that a failure reveals no held-out sentence."""
    totals = total_by_language(count_outcomes(part))
    overall = sum(totals.values(), Counter[str]())
    record_property("figure", f"Corpus, {part}: {_format(overall)}")
    assert overall["wrong money"] == 0, _format(overall)
    assert overall["right"] >= MIN_ACCURACY * overall.total(), _format(overall)


def _format(outcomes: Counter[str]) -> str:
    figures = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in OUTCOMES)
    return f"{figures} of {outcomes.total()} ({outcomes['right'] / outcomes.total():.1%} right)"


def print_report() -> None:
    for part in PARTS:
        counts = count_outcomes(part)
        print(f"== {part}")
        for (language, intent), outcomes in sorted(counts.items()):
            print(f"{language:4} {intent:20} {_format(outcomes)}")
        for language, totals in total_by_language(counts).items():
            print(f"{language:4} {'all':20} {_format(totals)}")
        print(f"{'':4} {'all':20} {_format(sum(total_by_language(counts).values(), Counter()))}")
    for sentence in load_corpus():
        outcome = classify(sentence)
        if sentence.part == "development" and outcome != "right":
            print(f"{outcome}: {'/'.join(sentence.intents)}: {sentence.text} -> {answer(sentence)}")


if __name__ == "__main__":
    print_report()
