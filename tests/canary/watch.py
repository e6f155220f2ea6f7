"""The canary: hears the secrets of whatever happens, then looks for them where none may be."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from canary import places
from canary.overhearing import Ear, overheard
from canary.places import Place
from canary.register import Found, Register

#: Without these nothing would be found because nothing was looked at.
_LEAST = {"answers": 100, "PostgreSQL's log": 1000}


class Watch:
    def __init__(self, ear: Ear, database_url: str) -> None:
        self._ear = ear
        self._database_url = database_url
        self._places: list[Place] = []
        self._folders: list[Path] = []

    @property
    def register(self) -> Register:
        return self._ear.register

    def knows(self, what: str, value: str | None) -> None:
        """A secret that no client ever sends, such as the key of the installation."""
        self.register.learn(what, value)

    def look_into(self, name: str, text: str | bytes) -> None:
        self._places.append(Place(name, text.encode() if isinstance(text, str) else text))

    def look_at_processes(self) -> None:
        """While they run."""
        self._places += places.processes()

    def look_through(self, folder: Path) -> None:
        """In the end, when all is written."""
        self._folders.append(folder)

    async def found(self, more: Iterable[Place] = ()) -> list[Found]:
        looked_at = [*self._places, *more, *await places.database(self._database_url)]
        looked_at.append(Place("answers", b"\n".join(self._ear.answers)))
        for folder in self._folders:
            looked_at += places.files(folder)
        return [
            found
            for place in looked_at
            for found in self.register.found(place.name, place.data, digits=place.digits)
        ]


@contextlib.asynccontextmanager
async def watched(database_url: str) -> AsyncIterator[Watch]:
    """In the end no secret that was heard is anywhere but where it belongs."""
    with overheard() as ear:
        watch = Watch(ear, database_url)
        async with places.every_statement_logged(database_url) as log:
            start = log.stat().st_size
            yield watch
            found = await watch.found()
        found += watch.register.found(*places.written_since(log, start)[:2])
    assert not found, told(found)


def told(found: list[Found]) -> str:
    """One line for each place and kind."""
    first = {(one.place, one.what): one.around for one in reversed(found)}
    return "\n".join(f"{what} in {place}: {around!r}" for (place, what), around in first.items())
