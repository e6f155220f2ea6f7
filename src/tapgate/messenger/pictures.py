"""Pictures that people send to prove who they are, from both ways in: checked, and made anew.

What is refused is a `PictureError`, whose text comes after "The picture" or the field's name. When
too many are being looked at, it is the `ApiError` of `Threads`: nothing is wrong with the picture,
and it may be tried again.
"""

from typing import Final, Protocol

from tapgate.images import EncodedImage, ImageError, decode_data_uri, reencode
from tapgate.messenger.model.incoming import ImageFile
from tapgate.service.thread_pool import BoundedThreadPool

LARGEST_BYTES: Final = 5 * 1024 * 1024

#: Each may take a hundred megabytes while it is looked at.
looking: Final = BoundedThreadPool("pictures", at_once=2, most=8)

#: The second is no type, but many say it.
_TYPES: Final = {"image/jpeg": "image/jpeg", "image/jpg": "image/jpeg", "image/png": "image/png"}
#: What base64 makes of the largest, behind the longest prefix.
_LONGEST_DATA_URI: Final = (LARGEST_BYTES + 2) // 3 * 4 + len("data:image/jpeg;base64,")


class Media(Protocol):
    """`media` of the compatibility endpoint. Its size is not looked at: nothing depends on it, and
    some count the picture as it is encoded."""

    @property
    def data(self) -> str | None: ...
    @property
    def mimetype(self) -> str | None: ...


class Graph(Protocol):
    """Where the channel keeps what was sent. Checks the hash; raises its own `MediaError`."""

    async def media(
        self, media_id: str, limit: int = ..., *, sha256: str | None = None
    ) -> bytes: ...


async def from_bridge(media: Media) -> EncodedImage:
    """A refusal is about `media.data`."""
    if not media.data:
        raise ImageError("is required")
    if len(media.data) > _LONGEST_DATA_URI:
        raise ImageError(f"must not hold more than {LARGEST_BYTES // 1024**2} MB")
    picture = await looking.run(decode_data_uri, media.data)
    if media.mimetype and _type(media.mimetype) != picture.media_type:
        raise ImageError("is not of the type that mimetype says")
    return picture


async def from_channel(graph: Graph, image: ImageFile) -> EncodedImage:
    announced = _type(image.mime_type) if image.mime_type else None
    if image.mime_type and announced is None:
        raise ImageError("must be a JPEG or PNG picture")
    content = await graph.media(image.media_id, LARGEST_BYTES, sha256=image.sha256)
    picture = await looking.run(reencode, content)
    if announced not in (None, picture.media_type):
        raise ImageError("is not of the type that it is announced as")
    return picture


def _type(announced: str) -> str | None:
    return _TYPES.get(announced.partition(";")[0].strip().lower())
