"""Long passwords that are among the first that anybody would try.

What is long and yet often chosen is nearly always one short thing made longer: one word with
figures around it, the same again and again, a walk over the keyboard. So there are rules for these
instead of a list. More than one word is left alone: a phrase is what a password should be.
"""

import re
from collections.abc import Iterable

_FEWEST_CHARACTERS = 5
_SHORTEST_RUN = 4
#: So little beside runs along the keyboard makes nothing harder to guess.
_MOST_BESIDE_RUNS = 3

_WALKS = (
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890",
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "qwertzuiop",
    "azertyuiop",
    "1q 2w 3e 4r 5t 6y 7u 8i 9o 0p",
    "q1 w2 e3 r4 t5 y6 u7 i8 o9 p0",
    "1qaz 2wsx 3edc 4rfv 5tgb 6yhn 7ujm",
    "qaz wsx edc rfv tgb yhn ujm",
)
_RUNS = tuple(walk.replace(" ", "")[::way] for walk in _WALKS for way in (1, -1))

#: What people choose, and what this platform is about: the names of its parts and its roles.
WORDS = frozenset(
    """
    abc access account admin adminadmin administrator agent amazing angel apple asdf august autumn
    babygirl bailey bank banking baseball basketball batman beautiful bitcoin blessed bonjour
    butterfly card cards cash changeme charlie cheese chocolate compliance complianceuser computer
    config cookie corporate dashboard database december default demo developer diamond dragon
    eagle enter everything family february finance financeuser flower football forever freedom
    freetown friday friend friends gateway ginger god google guest hannah happy harley hello
    helloworld hockey hunter iloveu iloveyou initial internet january jennifer jessica jesus
    jordan july june killer king letmein liverpool login london lovely loveme lovers manager march
    master matrix maverick mercedes merchant messenger michael monday money monkey motdepasse
    mother mustang nothing november october operator partner pass passphrase passw password
    passwords passwort payment payments paypal pepper pincode platform please police power
    princess private processor qwerty rainbow root samsung saturday secret secure security
    september server service shadow sierraleone soccer spring star starwars summer sunday sunshine
    superadmin superman superuser supervisor support supportuser sweetheart sysadmin system
    systemadmin tapgate temp temporary terminal test tester testing thomas thursday tigger
    transaction transfer trustno trustnoone tuesday undefined unknown user username wallet
    wednesday welcome whatever william winter wordpass
    """.split()
)
_MEANT = str.maketrans("4@3105$7!", "aaeiossti")
_NO_LETTERS = re.compile(r"[^a-z]+")
_AROUND = re.compile(r"^[\W\d_]+|[\W\d_]+$")


def is_guessable(password: str, own: Iterable[str]) -> bool:
    """`own` is what anybody knows about who will have it: the name, the e-mail address."""
    text = password.casefold()
    return (
        len(set(text)) < _FEWEST_CHARACTERS
        or _is_one_thing_repeated(text)
        or len(_without_runs(text)) <= _MOST_BESIDE_RUNS
        or _is_one_word(text, WORDS | _words_of(own))
    )


def _is_one_word(text: str, words: frozenset[str]) -> bool:
    """Whatever figures and signs are around it, and however it is spelt with them."""
    inner = _AROUND.sub("", text)
    spellings = {_NO_LETTERS.sub("", spelt) for spelt in (text, inner, inner.translate(_MEANT))}
    return any(word in words or _half(word) in words for word in spellings)


def _half(word: str) -> str | None:
    """What is there twice."""
    middle = len(word) // 2
    return word[:middle] if word[:middle] == word[middle:] else None


def _is_one_thing_repeated(text: str) -> bool:
    for length in range(1, len(text) // 2 + 1):
        times = -(-len(text) // length)
        if (text[:length] * times)[: len(text)] == text:
            return True
    return False


def _without_runs(text: str) -> str:
    kept, start = "", 0
    while start < len(text):
        run = _run_at(text, start)
        if run < _SHORTEST_RUN:
            kept += text[start]
            run = 1
        start += run
    return kept


def _run_at(text: str, start: int) -> int:
    """How many characters from there on are a walk."""
    longest = 1
    while any(text[start : start + longest + 1] in run for run in _RUNS):
        if start + longest >= len(text):
            break
        longest += 1
    return longest


def _words_of(own: Iterable[str]) -> frozenset[str]:
    """Each whole, and the words in it."""
    known = set[str]()
    for text in own:
        lower = text.casefold()
        known |= {_NO_LETTERS.sub("", lower), *_NO_LETTERS.split(lower)}
        known |= {_NO_LETTERS.sub("", part) for part in lower.split("@")}
    return frozenset(word for word in known if word)
