"""Pictures to send, from files."""

from pathlib import Path
from typing import Final, NamedTuple

from tapgate.cli.chat.errors import ChatError

_LARGEST: Final = 5 * 1024 * 1024
#: How a file of each kind begins, whatever its name says.
_BEGINNINGS: Final = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png"}


class PictureFile(NamedTuple):
    name: str
    media_type: str
    content: bytes


def read_file(name: str) -> PictureFile:
    try:
        path = Path(name).expanduser()
        if path.exists() and not path.is_file():
            raise ChatError(f"{name} is not a file")
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise ChatError(f"{name}: {error.strerror}") from None
    except (RuntimeError, ValueError):  # no such user behind ~, or a NUL in it
        raise ChatError(f"{name!r} cannot be the name of a file") from None
    if len(content) > _LARGEST:
        raise ChatError(f"{name} has more than {_LARGEST // 1024**2} MB: send a smaller picture")
    for beginning, media_type in _BEGINNINGS.items():
        if content.startswith(beginning):
            return PictureFile(path.name, media_type, content)
    raise ChatError(f"{name} is not a JPEG or PNG picture")
