"""Pictures that people send to prove who they are, from both ways in: checked, and made anew.

What is refused is a `PictureError`, whose text comes after "The picture" or the field's name.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

from tapgate.errors import ApiError
from tapgate.images import Picture, PictureError, made_anew, read_picture
from tapgate.messenger.model.incoming import ImageFile
from tapgate.service.threads import Threads

LARGEST_BYTES: Final = 5 * 1024 * 1024

#: Each holds a decoded picture of some hundred megabytes at worst.
AT_ONCE: Final = 2
MOST_PICTURES: Final = 8
looking: Final = Threads("pictures", at_once=AT_ONCE, most=MOST_PICTURES)

#: The second is no type, but many say it.
_TYPES: Final = {"image/jpeg": "image/jpeg", "image/jpg": "image/jpeg", "image/png": "image/png"}
#: What base64 makes of the largest, and the prefix.
_LONGEST_DATA_URI: Final = (LARGEST_BYTES + 2) // 3 * 4 + len("data:image/jpeg;base64,")

T = TypeVar("T")


class PictureBusyError(PictureError):
    """Nothing is wrong with the picture; it may be sent again."""


class Graph(Protocol):
    """Where the channel keeps what was sent. Checks the hash; raises its own `MediaError`."""

    async def media(
        self, media_id: str, limit: int = ..., *, sha256: str | None = None
    ) -> bytes: ...


async def from_bridge(media: object) -> Picture:
    """The picture in `media` of the compatibility endpoint; a refusal is about `media.data`.

    `size` is not looked at: nothing depends on it, and some count the encoded picture.
    """
    fields: Mapping[str, Any] = media if isinstance(media, dict) else {}
    data, mimetype = fields.get("data"), fields.get("mimetype")
    if not isinstance(data, str):
        raise PictureError("is required")
    if len(data) > _LONGEST_DATA_URI:
        raise PictureError(f"must not be larger than {LARGEST_BYTES // 1024**2} MB")
    picture = await _looked_at(read_picture, data)
    if mimetype is not None and _type(mimetype) != picture.media_type:
        raise PictureError("is not of the type that mimetype says")
    return picture


async def from_channel(graph: Graph, image: ImageFile) -> Picture:
    announced = None if image.mime_type is None else _type(image.mime_type)
    if image.mime_type is not None and announced is None:
        raise PictureError("must be a JPEG or PNG picture")
    content = await graph.media(image.media_id, LARGEST_BYTES, sha256=image.sha256)
    picture = await _looked_at(made_anew, content)
    if announced is not None and announced != picture.media_type:
        raise PictureError("is not of the type that it is announced as")
    return picture


def _type(announced: object) -> str | None:
    if not isinstance(announced, str):
        return None
    return _TYPES.get(announced.partition(";")[0].strip().lower())


async def _looked_at(read: Callable[[T], Picture], content: T) -> Picture:
    try:
        return await looking.run(read, content)
    except ApiError:
        raise PictureBusyError(
            "cannot be looked at now, please send it again in a moment"
        ) from None
