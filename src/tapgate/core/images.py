"""Decodes untrusted images. Re-encoding discards everything except the pixels.

These functions are CPU-intensive and must not run on the event loop. Pillow is imported when the
first image arrives, so that processes start faster.
"""

import base64
import binascii
import io
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image

#: Accepted data URI prefixes, and the media type that the content must have.
DATA_URI_MEDIA_TYPES: Final = {
    "data:image/jpeg;base64": "image/jpeg",
    "data:image/png;base64": "image/png",
}

#: A good phone camera's resolution. Decoding takes up to four bytes of memory per pixel.
MAX_PIXELS: Final = 40_000_000
#: Each row has a fixed memory overhead: an image 1 pixel wide and 40 million pixels high would
#: need half a gigabyte.
MAX_SIDE_PIXELS: Final = 20_000

#: MPO is a JPEG followed by further images, a format that many phones produce.
_MEDIA_TYPE_BY_FORMAT: Final = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png"}
_JPEG_QUALITY: Final = 90

#: Cameras write one scan; progressive images on the web have about ten. A scan can be only a few
#: bytes long, but makes the decoder process the whole image.
_MAX_JPEG_SCANS: Final = 40
#: Any number of 0xFF bytes may precede a marker. The pattern does not use `\xff+`, which would
#: backtrack from every 0xFF in a run that no marker follows.
_JPEG_MARKER: Final = re.compile(rb"\xff([\x01-\xfe])")
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
#: Pillow modes saved as is. Others become RGB, or RGBA for a PNG with transparency.
_JPEG_MODES: Final = frozenset({"L", "RGB"})
_PNG_MODES: Final = frozenset({"1", "L", "I;16", "RGB"})


class ImageError(ValueError):
    """The image is invalid. The message completes "<field> ..." and never quotes the input."""


class EncodedImage(NamedTuple):
    media_type: str
    content: bytes


def decode_data_uri(data_uri: str, *, max_side: int = MAX_SIDE_PIXELS) -> EncodedImage:
    """Decode and re-encode the image in a data URI; raise ImageError if it is invalid."""
    prefix, _, encoded = data_uri.partition(",")
    media_type = DATA_URI_MEDIA_TYPES.get(prefix.lower())
    if media_type is None:
        raise ImageError("must start with data:image/jpeg;base64, or data:image/png;base64,")
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise _build_error("must be valid base64") from None
    image = reencode(content, max_side=max_side)
    if image.media_type != media_type:
        raise _build_error("does not match its declared media type")
    return image


def reencode(content: bytes, *, max_side: int = MAX_SIDE_PIXELS) -> EncodedImage:
    from PIL.Image import DecompressionBombError, DecompressionBombWarning  # noqa: PLC0415

    try:
        return _reencode(content, max_side)
    except ImageError:
        raise
    except (DecompressionBombError, DecompressionBombWarning):
        raise _build_too_large_error() from None
    except Exception:
        # Decoders raise many kinds of exceptions on malicious input.
        raise _build_error("must be a valid JPEG or PNG image") from None


def _reencode(content: bytes, max_side: int) -> EncodedImage:
    from PIL import Image, ImageOps  # noqa: PLC0415

    with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
        media_type = _MEDIA_TYPE_BY_FORMAT[image.format or ""]
        # The size comes from the file header; nothing has been decoded yet.
        if image.width * image.height > MAX_PIXELS:
            raise _build_too_large_error()
        if max(image.size) > max_side:
            raise _build_error(f"must be at most {max_side} pixels wide and high")
        if media_type == "image/png" and getattr(image, "is_animated", False):
            raise _build_error("must not be animated")
        if media_type == "image/jpeg" and count_jpeg_scans(content) > _MAX_JPEG_SCANS:
            raise _build_error(f"must have at most {_MAX_JPEG_SCANS} scans")
        image.load()
        ImageOps.exif_transpose(image, in_place=True)
        if media_type == "image/jpeg":
            return EncodedImage(media_type, _encode_jpeg(image))
        return EncodedImage(media_type, _encode_png(image))


def count_jpeg_scans(content: bytes) -> int:
    """Return the number of scans in a JPEG file's first image."""
    scans = position = 0
    while (match := _JPEG_MARKER.search(content, position)) is not None:
        marker, position = match[1][0], match.end()
        if marker == _END_OF_IMAGE:
            break
        scans += marker == _START_OF_SCAN
        # Markers below 0xC0 are unknown to decoders. Restart (0xD0 to 0xD7) and start of image
        # (0xD8) have no payload.
        if marker > _END_OF_IMAGE or 0xC0 <= marker < 0xD0:
            position += int.from_bytes(content[position : position + 2])
    return scans


def _encode_jpeg(image: "Image") -> bytes:
    return _save_without_metadata(
        image if image.mode in _JPEG_MODES else image.convert("RGB"), "JPEG"
    )


def _encode_png(image: "Image") -> bytes:
    if image.has_transparency_data:
        return _save_without_metadata(image.convert("RGBA"), "PNG")
    return _save_without_metadata(
        image if image.mode in _PNG_MODES else image.convert("RGB"), "PNG"
    )


def _save_without_metadata(image: "Image", image_format: str) -> bytes:
    image.info = {}  # drop metadata such as location, time and device
    file = io.BytesIO()
    image.save(file, image_format, quality=_JPEG_QUALITY)
    return file.getvalue()


def _build_too_large_error() -> ImageError:
    return _build_error(f"must have at most {MAX_PIXELS // 1_000_000} million pixels")


def _build_error(message: str) -> ImageError:
    return ImageError(message)
