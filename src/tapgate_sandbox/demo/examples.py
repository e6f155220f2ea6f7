"""File with the demo's example requests, and the subscriber in them."""

import re
from pathlib import Path
from typing import Final

import msgspec

from tapgate.core import private_files

_FILE_NAME: Final = "demo.txt"
_API_KEY_PATTERN: Final = re.compile(r"Bearer (svc_test_[\w-]+)")
_SIGNING_KEY_PATTERN: Final = re.compile(r"--key-id (\S+) --secret=([\w-]+)")
_SUBSCRIBER_PATTERN: Final = re.compile(r"/subscribers/(sub_\w+)")
_AGENT_PATTERN: Final = re.compile(r'"agent_id":"(agt_\w+)".*"agent_pin":"([0-9]{4})"')
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


class ExampleKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys in the examples, and the records that the requests name."""

    api_key: str
    signing_key_id: str
    signing_secret: str
    subscriber_id: str
    agent_id: str
    agent_pin: str

    def __repr__(self) -> str:
        return f"ExampleKeys(signing_key_id={self.signing_key_id!r})"


def load_example_keys(data_dir: Path) -> ExampleKeys | None:
    """Return the keys of the examples, or None if there are none."""
    text = "\n".join(load_examples(data_dir))
    api_key, signing_key = _API_KEY_PATTERN.search(text), _SIGNING_KEY_PATTERN.search(text)
    subscriber, agent = _SUBSCRIBER_PATTERN.search(text), _AGENT_PATTERN.search(text)
    if api_key is None or signing_key is None or subscriber is None or agent is None:
        return None
    return ExampleKeys(
        api_key=api_key[1],
        signing_key_id=signing_key[1],
        signing_secret=signing_key[2],
        subscriber_id=subscriber[1],
        agent_id=agent[1],
        agent_pin=agent[2],
    )


def load_example_phone(data_dir: Path) -> str | None:
    person = load_example_person(data_dir)
    return None if person is None else person.phone
