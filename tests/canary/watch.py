"""The canary: hears the secrets of whatever happens, then looks for them where none may be."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from canary import places
from canary.overhearing import Ear, overheard
from canary.places import Place
from canary.register import Found, Register
from tapgate.settings import Settings


class Watch:
    def __init__(self, ear: Ear, database_url: str) -> None:
        self._ear = ear
        self._database_url = database_url
        self._places: list[Place] = []
        self._told: list[Place] = []
        self._folders: list[Path] = []

    @property
    def register(self) -> Register:
        return self._ear.register

    def knows(self, what: str, value: str | None) -> None:
        """A secret that no client ever sends, such as the key of the installation."""
        self.register.learn(what, value)

    def knows_those_of(self, settings: Settings) -> None:
        """Of the installation."""
        self.knows("the JWT secret", settings.jwt_secret)
        self.knows("the secret key", settings.secret_key)
        for name, secret in settings.service_secrets.items():
            self.knows(f"the service secret of the {name}", secret)

    def look_into(self, name: str, text: str | bytes) -> None:
        self._places.append(Place(name, text.encode() if isinstance(text, str) else text))

    def look_for_pins(self, name: str, text: str) -> None:
        """Where people are told codes and get forms."""
        self._told.append(Place(name, text.encode()))

    def look_at_processes(self) -> None:
        """While they run."""
        self._places += places.processes()

    def look_through(self, folder: Path) -> None:
        """In the end, when all is written."""
        self._folders.append(folder)

    async def found(self) -> list[Found]:
        looked_at = [*self._places, *await places.database(self._database_url)]
        looked_at.append(Place("answers", b"\n".join(self._ear.answers)))
        for folder in self._folders:
            looked_at += places.files(folder)
        return _in_all(self.register, looked_at) + _in_all(self.register.only("pin"), self._told)


@contextlib.asynccontextmanager
async def watched(database_url: str) -> AsyncIterator[Watch]:
    """In the end no secret that was heard is anywhere but where it belongs."""
    with overheard() as ear:
        watch = Watch(ear, database_url)
        async with places.every_statement_logged(database_url) as log:
            start = log.stat().st_size
            yield watch
            found = await watch.found()
        found += _in_all(watch.register, [places.written_since(log, start)])
    assert not found, told(found)


def _in_all(register: Register, looked_at: Iterable[Place]) -> list[Found]:
    return [
        found
        for place in looked_at
        for found in register.found(place.name, place.data, digits=place.digits)
    ]


def told(found: list[Found]) -> str:
    """One line for each place and kind."""
    first = {(one.place, one.what): one.around for one in reversed(found)}
    return "\n".join(f"{what} in {place}: {around!r}" for (place, what), around in first.items())
