"""Accuracy of the resolver on held-out texts."""

from collections import Counter
from collections.abc import Callable
from typing import Literal

import pytest

from messenger.understanding.held_out_samples import SAMPLES
from tapgate.messenger.model.common import COMMANDS, Command
from tapgate.messenger.model.events import Intent
from tapgate.messenger.understanding.resolver import resolve

Outcome = Literal["right", "asked", "nothing", "wrong"]
#: Commands that can lead to a movement of money.
MONEY_COMMANDS: frozenset[Command] = frozenset({"send", "yes"})


def test_held_out_samples_are_unique_and_cover_every_command() -> None:
    texts = [text for samples in SAMPLES.values() for text, _ in samples]
    assert [len(samples) for samples in SAMPLES.values()] == [30, 30]
    assert len(set(texts)) == len(texts)
    expected = {expected for samples in SAMPLES.values() for _, expected in samples}
    assert expected == {*COMMANDS, None}


@pytest.mark.parametrize("language_known", [True, False])
def test_at_most_one_held_out_text_resolves_to_a_wrong_money_command(
    language_known: bool, record_property: Callable[[str, object], None]
) -> None:
    outcomes: Counter[Outcome] = Counter()
    money_by_mistake: list[str] = []
    for language, samples in SAMPLES.items():
        for text, expected in samples:
            intent = resolve(text, language if language_known else None)
            outcomes[classify_outcome(intent, expected)] += 1
            if intent.command in MONEY_COMMANDS and intent.command != expected:
                money_by_mistake.append(text)
    condition = "with the language known" if language_known else "with the language not known"
    counts = ", ".join(
        f"{outcomes[outcome]} {outcome}" for outcome in ("right", "asked", "nothing", "wrong")
    )
    record_property(
        "figure",
        f"Of {outcomes.total()} held-out texts, {condition}: {counts}; "
        f"wrong money actions: {len(money_by_mistake)}",
    )
    assert len(money_by_mistake) <= 1, money_by_mistake


def classify_outcome(intent: Intent, expected: Command | None) -> Outcome:
    """Classify an intent; an unneeded question counts as `asked`, since it starts nothing."""
    if intent.command is not None:
        return "right" if intent.command == expected else "wrong"
    if expected is None:
        return "asked" if intent.candidates else "right"
    return "asked" if expected in intent.candidates else "nothing"
