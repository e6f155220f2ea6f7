"""Check of commit messages: `area: Imperative summary`, at most 72 characters.

Checks the commits since the revision given as an argument. Without an argument, checks the commits
since FIRST_CHECKED_PARENT, or none if the clone does not contain that commit. Skips merges.
"""

import re
import subprocess
import sys
from collections.abc import Iterator

#: Parent of the first checked commit. The subjects of earlier commits are not checked.
FIRST_CHECKED_PARENT = "1ca1b61bbd9f82f4a848bce30754340d64962a42"
MAX_SUBJECT_LENGTH = 72
SUBJECT_PATTERN = re.compile(r"[a-z][a-z0-9_./-]*: (?P<verb>[A-Z][a-z-]*)\b.*[^.\s]")
#: Matches "Added", "Adding" and "Adds", but also the imperative verbs below.
NOT_IMPERATIVE = re.compile(r".*(?:[^e]ed|[^r]ing|[^s]s)")
IMPERATIVE_VERBS = frozenset({"Alias", "Embed", "Focus", "Ping", "Shed"})


def find_problems(subject: str) -> Iterator[str]:
    if len(subject) > MAX_SUBJECT_LENGTH:
        yield f"has {len(subject)} characters, the limit is {MAX_SUBJECT_LENGTH}"
    match = SUBJECT_PATTERN.fullmatch(subject)
    if match is None:
        yield "is not of the form 'area: Imperative summary' without a final period"
    elif NOT_IMPERATIVE.fullmatch(match["verb"]) and match["verb"] not in IMPERATIVE_VERBS:
        yield f"starts with {match['verb']!r} instead of an imperative such as 'Add'"


def run_git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)  # noqa: S603, S607


def main() -> None:
    since = sys.argv[1] if len(sys.argv) > 1 else FIRST_CHECKED_PARENT
    log = run_git("log", "--no-merges", "--format=%h %s", f"{since}..HEAD")
    if log.returncode != 0:
        message = f"Cannot list the commits since {since}: {log.stderr.strip()}"
        if since != FIRST_CHECKED_PARENT:
            sys.exit(message)
        print(message, "Commit messages are not checked.", sep="\n")
    problems = [
        f"{commit} {problem}: {subject}"
        for commit, _, subject in (line.partition(" ") for line in log.stdout.splitlines())
        for problem in find_problems(subject)
    ]
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
