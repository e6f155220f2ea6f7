"""Password and secret strength, estimated with zxcvbn."""

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

#: Only this many leading characters are estimated, because the time grows quickly with length. A
#: strong prefix makes the whole text strong, and a prefix this long is rarely weak unless it is
#: repetitive.
MAX_ESTIMATED_LENGTH: Final = 32
#: zxcvbn's highest score: more than 10^10 guesses.
MIN_PASSWORD_SCORE: Final = 4
#: Minimum log10 of the estimated guesses for a secret. Secrets can be attacked offline, so they
#: must be stronger than passwords.
MIN_SECRET_GUESSES_LOG10: Final = 16

#: Words that an attacker would try first on this product.
_PRODUCT_WORDS: Final = ("tapgate", "gateway", "messenger", "wallet", "systemadmin", "freetown")


def find_bad_secret(
    secrets: Mapping[str, str], chosen: Collection[str], documented: Collection[str]
) -> str | None:
    """Return the first unacceptable secret's name with the reason, or None.

    All secrets must differ from each other and from the examples in the documentation. Secrets
    named in `chosen` must also be hard to guess.
    """
    names: dict[str, str] = {}
    for name, secret in secrets.items():
        if secret in documented:
            return f"{name} must not be an example from the documentation"
        if secret in names:
            return f"{name} must differ from {names[secret]}"
        if name in chosen and is_weak_secret(secret):
            return f"{name} is easy to guess. Use the output of openssl rand -base64 32"
        names[secret] = name
    return None


def is_weak_password(password: str, personal_data: Iterable[str] = ()) -> bool:
    """Return whether a password is easy to guess.

    `personal_data` contains facts about the owner that an attacker would try, such as the name.
    """
    return int(_estimate(password, personal_data)["score"]) < MIN_PASSWORD_SCORE


def is_breached(password: str, file: Path) -> bool:
    """Return whether a password is in a list of breached passwords.

    The file has one line per password, sorted: the SHA-1 hash in uppercase hexadecimal and,
    optionally, a colon and a count. Have I Been Pwned's downloads have this format. The file
    is searched by bisection, because it has more than 30 GB.
    """
    wanted = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()
    with file.open("rb") as lines:
        low, high = 0, lines.seek(0, os.SEEK_END)
        while low < high:  # if the hash has a line, it starts at `low` or after it, before `high`
            middle = (low + high) // 2
            lines.seek(middle)
            if middle > low:
                lines.readline()  # the rest of a line that starts before
            start, line = lines.tell(), lines.readline()
            found = line[: len(wanted)]
            if found == wanted:
                return True
            if not line or found > wanted:
                high = middle
            else:
                low = start + len(line)
    return False


def is_weak_secret(secret: str) -> bool:
    """Return whether a secret can be guessed with fewer than 10^16 attempts, as estimated."""
    return float(_estimate(secret, ())["guesses_log10"]) < MIN_SECRET_GUESSES_LOG10


def _estimate(text: str, personal_data: Iterable[str]) -> dict[str, float]:
    if not text:  # zxcvbn cannot estimate an empty string
        return {"score": 0, "guesses_log10": 0}
    # Imported here because the import loads large dictionaries, and few processes need them.
    from zxcvbn import zxcvbn  # noqa: PLC0415

    words = [word for value in personal_data for word in (value, *_split_words(value))]
    estimate: dict[str, float] = zxcvbn(
        text[:MAX_ESTIMATED_LENGTH], user_inputs=[*_PRODUCT_WORDS, *words]
    )
    return estimate


def _split_words(text: str) -> list[str]:
    """Return the words in a name or an email address."""
    return "".join(letter if letter.isalnum() else " " for letter in text).split()
