"""docs/asvs.md answers every level 1 and 2 requirement once, and its totals are correct."""

import re
from collections import Counter
from pathlib import Path

ROW = re.compile(r"^\| ([0-9., ]+) \| (.+?) \| (yes|operator|n\.a\.|no) \| (.+) \|$", re.MULTILINE)

#: Number of the last requirement of level 1 or 2 in each ASVS 5.0.0 section. Numbers start at 1
#: and have no gaps, because the requirements of level 3 come last in every section.
LAST_REQUIREMENT_BY_SECTION = {
    "1.1": 2, "1.2": 9, "1.3": 11, "1.4": 3, "1.5": 2,
    "2.1": 3, "2.2": 3, "2.3": 4, "2.4": 1,
    "3.2": 2, "3.3": 4, "3.4": 6, "3.5": 5, "3.7": 2,
    "4.1": 3, "4.2": 1, "4.3": 2, "4.4": 4,
    "5.1": 1, "5.2": 3, "5.3": 2, "5.4": 3,
    "6.1": 3, "6.2": 12, "6.3": 4, "6.4": 4, "6.5": 5, "6.6": 3, "6.8": 4,
    "7.1": 3, "7.2": 4, "7.3": 2, "7.4": 5, "7.5": 2, "7.6": 2,
    "8.1": 2, "8.2": 3, "8.3": 1, "8.4": 1,
    "9.1": 3, "9.2": 4,
    "10.1": 2, "10.2": 2, "10.3": 4, "10.4": 11, "10.5": 5, "10.6": 2, "10.7": 3,
    "11.1": 2, "11.2": 3, "11.3": 3, "11.4": 4, "11.5": 1, "11.6": 1,
    "12.1": 3, "12.2": 2, "12.3": 4,
    "13.1": 1, "13.2": 5, "13.3": 2, "13.4": 5,
    "14.1": 2, "14.2": 4, "14.3": 3,
    "15.1": 3, "15.2": 3, "15.3": 7,
    "16.1": 1, "16.2": 5, "16.3": 4, "16.4": 3, "16.5": 3,
    "17.1": 1, "17.2": 4, "17.3": 2,
}  # fmt: skip
REQUIREMENT_IDS = [
    f"{section}.{n}"
    for section, last in LAST_REQUIREMENT_BY_SECTION.items()
    for n in range(1, last + 1)
]

ASVS = (Path(__file__).parents[2] / "docs" / "asvs.md").read_text()
ROWS = [(row[1].split(", "), row[2], row[3], row[4]) for row in ROW.finditer(ASVS)]


def test_every_requirement_is_answered_once() -> None:
    assert len(REQUIREMENT_IDS) == 253
    answered = Counter(number for numbers, *_ in ROWS for number in numbers)
    assert sorted(REQUIREMENT_IDS) == sorted(answered.elements())


def test_every_table_row_is_parsed() -> None:
    """A row with a misspelled answer does not match `ROW` and would be missing from the totals."""
    numbered = re.findall(r"^\| [0-9]+\.[0-9]+\.[0-9].*$", ASVS, re.MULTILINE)
    assert len(numbered) == len(ROWS)


def test_summary_and_list_of_unmet_requirements_match_the_rows() -> None:
    counts = Counter(reply for numbers, _, reply, _ in ROWS for _ in numbers)
    summary = dict(re.findall(r"^\| (yes|operator|n\.a\.|no|all) \| (\d+) \|$", ASVS, re.MULTILINE))
    documented = {response: int(count) for response, count in summary.items()}
    assert documented == {**counts, "all": len(REQUIREMENT_IDS)}
    unmet = [
        f"- {number} {requirement}"
        for numbers, requirement, verdict, _ in ROWS
        if verdict == "no"
        for number in numbers
    ]
    assert ASVS.endswith("\n".join(unmet) + "\n")
    assert f"The {len(unmet)} requirements that Tapgate does not meet:" in ASVS
