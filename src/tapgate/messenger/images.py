"""Pictures that people send to prove who they are, from both ways in: checked, and made anew.

What is refused is a `PictureError`, whose text comes after "The picture" or the field's name. When
too many are being looked at, it is the `ApiError` of `Threads`: nothing is wrong with the picture,
and it may be tried again.
"""

from typing import Final, Protocol

from tapgate.images import EncodedImage, ImageError, decode_data_uri, reencode
from tapgate.messenger.model.incoming import ImageFile
from tapgate.service.thread_pool import BoundedThreadPool

MAX_IMAGE_BYTES: Final = 5 * 1024 * 1024

#: Each may take a hundred megabytes while it is looked at.
image_threads: Final = BoundedThreadPool("pictures", at_once=2, most=8)

#: The second is no type, but many say it.
_MEDIA_TYPES: Final = {
    "image/jpeg": "image/jpeg",
    "image/jpg": "image/jpeg",
    "image/png": "image/png",
}
#: What base64 makes of the largest, behind the longest prefix.
_MAX_DATA_URI_LENGTH: Final = (MAX_IMAGE_BYTES + 2) // 3 * 4 + len("data:image/jpeg;base64,")


class InlineMedia(Protocol):
    """`media` of the compatibility endpoint. Its size is not looked at: nothing depends on it, and
    some count the picture as it is encoded."""

    @property
    def data(self) -> str | None: ...
    @property
    def mimetype(self) -> str | None: ...


class MediaSource(Protocol):
    """Where the channel keeps what was sent. Checks the hash; raises its own `MediaError`."""

    async def fetch_media(
        self, media_id: str, limit: int = ..., *, sha256: str | None = None
    ) -> bytes: ...


async def load_bridge_image(media: InlineMedia) -> EncodedImage:
    """A refusal is about `media.data`."""
    if not media.data:
        raise ImageError("is required")
    if len(media.data) > _MAX_DATA_URI_LENGTH:
        raise ImageError(f"must not hold more than {MAX_IMAGE_BYTES // 1024**2} MB")
    picture = await image_threads.run(decode_data_uri, media.data)
    if media.mimetype and _normalize_media_type(media.mimetype) != picture.media_type:
        raise ImageError("is not of the type that mimetype says")
    return picture


async def load_channel_image(graph: MediaSource, image: ImageFile) -> EncodedImage:
    announced = _normalize_media_type(image.mime_type) if image.mime_type else None
    if image.mime_type and announced is None:
        raise ImageError("must be a JPEG or PNG picture")
    content = await graph.fetch_media(image.media_id, MAX_IMAGE_BYTES, sha256=image.sha256)
    picture = await image_threads.run(reencode, content)
    if announced not in (None, picture.media_type):
        raise ImageError("is not of the type that it is announced as")
    return picture


def _normalize_media_type(announced: str) -> str | None:
    return _MEDIA_TYPES.get(announced.partition(";")[0].strip().lower())
