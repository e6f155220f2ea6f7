"""Word lists in each language, and rules that name the lists.

A list or a rule is an entry `name: item, item` of a text file; docs/messenger.md has the format.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tapgate.messenger.understanding.normalization import NUMBER_PLACEHOLDER, normalize_text

#: Maximum number of other words between two words in a rule.
_MAX_GAP: Final = 5
_FOLDER: Final = Path(__file__).parent


def read_entries(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the items of each entry. An indented line continues an entry."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    for entry in re.split(r"\n(?! )", "\n".join(lines)):
        name, _, items = entry.partition(":")
        yield name, [" ".join(item.split()) for item in items.split(",")]


def _load_words() -> dict[str, str]:
    """Return a regular expression for each list, with the words of all languages."""
    words = {"number": [NUMBER_PLACEHOLDER]}
    for path in sorted(_FOLDER.glob("words/*.txt")):
        for name, items in read_entries(path):
            words.setdefault(name, []).extend(
                normalize_text(item) + (r"\w*" if item.endswith("*") else "") for item in items
            )
    return {name: f"(?:{'|'.join(items)})" for name, items in words.items()}


#: Regular expression for one word in a list, by list name.
WORDS: Final = _load_words()


class Rule(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    exception: re.Pattern[str] | None


def load_rules(file_name: str) -> tuple[Rule, ...]:
    """Load rules in order of precedence; `name unless` holds the exceptions of `name`."""
    patterns = {name: compile_rules(items) for name, items in read_entries(_FOLDER / file_name)}
    return tuple(
        Rule(name, pattern, patterns.get(f"{name} unless"))
        for name, pattern in patterns.items()
        if not name.endswith(" unless")
    )


def match_rule(rules: tuple[Rule, ...], normalized: str) -> str | None:
    """Return the name of the first rule that matches a normalized text, or None."""
    for name, pattern, exception in rules:
        if pattern.search(normalized) and not (exception and exception.search(normalized)):
            return name
    return None


def compile_rules(items: list[str]) -> re.Pattern[str]:
    """Compile items such as `lost/stolen card`: word lists that follow one another in a text."""
    gap = rf" (?:\S+ ){{0,{_MAX_GAP}}}?"
    patterns = [
        gap.join(
            f"(?:{'|'.join(WORDS[name] for name in step.split('/'))})" for step in item.split()
        )
        for item in items
    ]
    return re.compile(rf"(?<!\S)(?:{'|'.join(patterns)})(?!\S)")
