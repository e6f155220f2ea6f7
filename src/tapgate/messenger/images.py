"""Validation and re-encoding of identity document images from the channel and from bridges.

An invalid image raises `ImageError`, whose text completes a sentence that starts with "The picture"
or the field's name. A failed download raises `MediaError`. When too many images are in progress,
`BoundedThreadPool` raises an `ApiError`: the image may be valid, and the caller can retry.
"""

from typing import Final

from tapgate.core.images import EncodedImage, ImageError, decode_data_uri, reencode
from tapgate.messenger.channel.graph import GraphClient
from tapgate.messenger.model import ImageFile
from tapgate.runtime.thread_pool import BoundedThreadPool

MAX_IMAGE_BYTES: Final = 5 * 1024 * 1024

#: Decoding one image may take more than 100 MB of memory, so the number of threads is small.
image_threads: Final = BoundedThreadPool("pictures", threads=2, max_pending=8)

#: `image/jpg` is not a registered media type, but many clients send it.
_MEDIA_TYPES: Final = {
    "image/jpeg": "image/jpeg",
    "image/jpg": "image/jpeg",
    "image/png": "image/png",
}
#: Data URI length for an image with the maximum size.
_MAX_DATA_URI_LENGTH: Final = (MAX_IMAGE_BYTES + 2) // 3 * 4 + len("data:image/jpeg;base64,")


async def load_inline_image(data: str | None, mimetype: str | None = None) -> EncodedImage:
    """Decode and re-encode a data URI from the compatibility endpoint or a simulated phone.

    The size that a bridge declares is ignored: some bridges send the encoded size.
    """
    if not data:
        raise ImageError("is required")
    if len(data) > _MAX_DATA_URI_LENGTH:
        raise ImageError(f"must be at most {MAX_IMAGE_BYTES // 1024**2} MB")
    picture = await image_threads.run(decode_data_uri, data)
    if mimetype and _normalize_media_type(mimetype) != picture.media_type:
        raise ImageError("does not match mimetype")
    return picture


async def load_channel_image(graph: GraphClient, image: ImageFile) -> EncodedImage:
    declared_type = _normalize_media_type(image.mime_type) if image.mime_type else None
    if image.mime_type and declared_type is None:
        raise ImageError("must be a JPEG or PNG image")
    content = await graph.fetch_media(image.media_id, MAX_IMAGE_BYTES, sha256=image.sha256)
    picture = await image_threads.run(reencode, content)
    if declared_type not in (None, picture.media_type):
        raise ImageError("does not match its declared media type")
    return picture


def _normalize_media_type(media_type: str) -> str | None:
    return _MEDIA_TYPES.get(media_type.partition(";")[0].strip().lower())
