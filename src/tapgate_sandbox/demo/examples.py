"""File with the demo's example requests, and the subscriber in them."""

import re
from pathlib import Path
from typing import Final

import msgspec

from tapgate.core import private_files

_FILE_NAME: Final = "demo.txt"
_PERSON_PATTERN: Final = re.compile(r"# (.+): phone (\+[0-9]+), card (\S+), PIN ([0-9]{4})")


def get_file(data_dir: Path) -> Path:
    return data_dir / _FILE_NAME


def save_examples(data_dir: Path, examples: list[str]) -> None:
    private_files.write(get_file(data_dir), examples)


def load_examples(data_dir: Path) -> list[str]:
    """Return the saved examples, or an empty list if there are none."""
    return private_files.read(get_file(data_dir))


class ExamplePerson(msgspec.Struct, frozen=True):
    """A subscriber in the examples."""

    name: str
    phone: str
    card: str
    pin: str

    def __repr__(self) -> str:
        return f"ExamplePerson(card={self.card!r})"


def load_example_people(data_dir: Path) -> list[ExamplePerson]:
    """Return the people in the examples, starting with the main one."""
    matches = _PERSON_PATTERN.finditer("\n".join(load_examples(data_dir)))
    return [ExamplePerson(*match.groups()) for match in matches]


def load_example_person(data_dir: Path) -> ExamplePerson | None:
    return next(iter(load_example_people(data_dir)), None)


def load_example_phone(data_dir: Path) -> str | None:
    person = load_example_person(data_dir)
    return None if person is None else person.phone
