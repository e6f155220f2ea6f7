"""Check of commit messages: `area: Imperative summary`, and a body that says why.

A subject has at most 72 characters and no genitive where English uses a compound noun. A commit
with more than 50 changed lines has a body. Checks the commits since the revision given as an
argument. Without an argument, checks the commits since FIRST_CHECKED_PARENT, or none if the clone
does not contain that commit. Skips merges.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple, Self

#: The first checked commit's parent. Earlier commits followed fewer rules.
FIRST_CHECKED_PARENT = "387992b1644f4eec4add406adfc20d7f00420816"
MAX_SUBJECT_LENGTH = 72
MAX_UNEXPLAINED_LINES = 50
#: A shorter body is a remark, not a reason.
MIN_BODY_LENGTH = 40
SUBJECT_PATTERN = re.compile(r"[a-z][a-z0-9_./-]*: (?P<verb>[A-Z][a-z-]*)\b.*[^.\s]")
#: Matches "Added", "Adding" and "Adds", but also the imperative verbs below.
NOT_IMPERATIVE = re.compile(r".*(?:[^e]ed|[^r]ing|[^s]s)")
IMPERATIVE_VERBS = frozenset({"Alias", "Embed", "Focus", "Ping", "Shed"})
#: "settings of connections" for "connection settings", "role of an admin" for "admin role". With an
#: adjective, as in "source of the last release", there is no compound noun.
GENITIVE = re.compile(
    r"\b(?P<head>[a-z]+) of (?:(?:a|an|the) (?!(?:last|next|previous)\b)[a-z]+|[a-z]+s\b)",
    re.IGNORECASE,
)
#: Heads of ordinary phrases: parts, quantities, and prepositions such as "instead of".
ORDINARY_HEADS = frozenset(
    """
    all amount amounts any beginning bill case combination copies copy days each end few first front
    half hours hundreds instead kind kinds last list lists lot majority many millions minutes months
    most none number numbers one order out page pages pair pairs part parts percent rest row rows
    seconds sequence series set sets share some start sum thousands top type types value values
    years
    """.split()
)
TRAILER = re.compile(r"^[A-Z][A-Za-z-]+: .*$", re.MULTILINE)
#: Characters that separate commits and their fields in the output of `git log`.
COMMIT_SEPARATOR, FIELD_SEPARATOR = "\x1e", "\x1f"


class Commit(NamedTuple):
    id: str
    subject: str
    body: str
    changed_lines: int

    @classmethod
    def parse(cls, text: str) -> Self:
        commit_id, subject, body, statistics = text.split(FIELD_SEPARATOR)
        counts = re.findall(r"(\d+) (?:insertion|deletion)", statistics)
        return cls(commit_id, subject, body, sum(map(int, counts)))


def iter_genitives(text: str) -> Iterator[str]:
    """Yield genitives where English uses a compound noun."""
    for genitive in GENITIVE.finditer(text):
        if genitive["head"].lower() not in ORDINARY_HEADS:
            yield genitive[0]


def find_problems(commit: Commit) -> Iterator[str]:
    subject = commit.subject
    if len(subject) > MAX_SUBJECT_LENGTH:
        yield f"has {len(subject)} characters, the limit is {MAX_SUBJECT_LENGTH}"
    match = SUBJECT_PATTERN.fullmatch(subject)
    if match is None:
        yield "is not of the form 'area: Imperative summary' without a final period"
    elif NOT_IMPERATIVE.fullmatch(match["verb"]) and match["verb"] not in IMPERATIVE_VERBS:
        yield f"starts with {match['verb']!r} instead of an imperative such as 'Add'"
    for genitive in iter_genitives(subject):
        yield f"has the genitive {genitive!r} instead of a compound noun"
    reason = TRAILER.sub("", commit.body).strip()
    if commit.changed_lines > MAX_UNEXPLAINED_LINES and len(reason) < MIN_BODY_LENGTH:
        yield f"changes {commit.changed_lines} lines without a body that says why"


def run_git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)  # noqa: S603, S607


def main() -> None:
    since = sys.argv[1] if len(sys.argv) > 1 else FIRST_CHECKED_PARENT
    fields = FIELD_SEPARATOR.join(("%h", "%s", "%b", ""))
    log = run_git(
        *("log", "--no-merges", "--find-renames", "--shortstat"),
        *(f"--format={COMMIT_SEPARATOR}{fields}", f"{since}..HEAD"),
    )
    if log.returncode != 0:
        message = f"Cannot list the commits since {since}: {log.stderr.strip()}"
        if since != FIRST_CHECKED_PARENT:
            sys.exit(message)
        print(message, "Commit messages are not checked.", sep="\n")
    problems = [
        f"{commit.id} {problem}: {commit.subject}"
        for commit in map(Commit.parse, log.stdout.split(COMMIT_SEPARATOR)[1:])
        for problem in find_problems(commit)
    ]
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
