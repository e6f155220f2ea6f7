"""Image files to send in a chat."""

from pathlib import Path
from typing import Final, NamedTuple

from tapgate.cli.chat.errors import ChatError

_MAX_BYTES: Final = 5 * 1024 * 1024
#: Signatures that identify the file type, regardless of the file name.
_MAGIC_BYTES: Final = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png"}


class LocalImage(NamedTuple):
    name: str
    media_type: str
    content: bytes


def read_image(name: str) -> LocalImage:
    try:
        path = Path(name).expanduser()
        if path.exists() and not path.is_file():
            raise ChatError(f"{name} is not a file")
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ChatError(f"{name}: {error.strerror}") from None
    except (RuntimeError, ValueError):  # unknown user after ~, or a NUL character
        raise ChatError(f"{name!r} is not a valid file name") from None
    if len(content) > _MAX_BYTES:
        raise ChatError(f"{name} is larger than {_MAX_BYTES // 1024**2} MB: send a smaller image")
    for signature, media_type in _MAGIC_BYTES.items():
        if content.startswith(signature):
            return LocalImage(path.name, media_type, content)
    raise ChatError(f"{name} is not a JPEG or PNG image")
