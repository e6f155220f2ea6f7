"""Pictures that strangers send: decoded, and made anew from nothing but their pixels.

All of it takes long, so it is not for the event loop.
"""

import base64
import binascii
import io
import re
from typing import Final, NamedTuple

from PIL import Image, ImageOps

#: How a data URI of each kind that is taken begins, and what it then must hold.
DATA_URI_MEDIA_TYPES: Final = {
    "data:image/jpeg;base64": "image/jpeg",
    "data:image/png;base64": "image/png",
}

#: What a good phone takes. A picture needs three or four bytes of memory for each.
MAX_PIXELS: Final = 40_000_000
#: Every row costs as much again as a few of its pixels: one pixel wide and forty million high, a
#: picture would need half a gigabyte.
MAX_SIDE_PIXELS: Final = 20_000

#: MPO is a JPEG with further pictures behind the first, as many phones take them.
_MEDIA_TYPE_BY_FORMAT: Final = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png"}
_JPEG_QUALITY: Final = 90

#: Cameras write one, the web's progressive pictures about ten. Each one may be a few bytes long and
#: makes the decoder go over the whole picture.
_MAX_JPEG_SCANS: Final = 40
#: Any number of 0xFF may come before it. Not as `\xff+`: where no marker follows, each of them
#: would be a place to begin from and to go back to.
_JPEG_MARKER: Final = re.compile(rb"\xff([\x01-\xfe])")
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
#: What can be kept as it is; all else becomes RGB.
_JPEG_MODES: Final = frozenset({"L", "RGB"})
_PNG_MODES: Final = frozenset({"1", "L", "I;16", "RGB"})


class ImageError(ValueError):
    """Why a picture is refused: what comes after its name in a sentence, and repeats nothing."""


class EncodedImage(NamedTuple):
    media_type: str
    content: bytes


def decode_data_uri(data_uri: str) -> EncodedImage:
    """The picture in a data URI."""
    announced, _, encoded = data_uri.partition(",")
    media_type = DATA_URI_MEDIA_TYPES.get(announced.lower())
    if media_type is None:
        raise ImageError("must begin with data:image/jpeg;base64, or data:image/png;base64,")
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise _build_error("is not valid base64") from None
    picture = reencode(content)
    if picture.media_type != media_type:
        raise _build_error("is not of the type that it is announced as")
    return picture


def reencode(content: bytes) -> EncodedImage:
    try:
        return _reencode(content)
    except ImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _build_too_large_error() from None
    except Exception:
        # A decoder fails in many ways when it is given what is meant to make it fail.
        raise _build_error("is not a JPEG or PNG picture, or damaged") from None


def _reencode(content: bytes) -> EncodedImage:
    with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
        media_type = _MEDIA_TYPE_BY_FORMAT[image.format or ""]
        # Known from the head of the file; nothing has been decoded yet.
        if image.width * image.height > MAX_PIXELS:
            raise _build_too_large_error()
        if max(image.size) > MAX_SIDE_PIXELS:
            raise _build_error(f"must not be more than {MAX_SIDE_PIXELS} pixels wide or high")
        if media_type == "image/png" and getattr(image, "is_animated", False):
            raise _build_error("must not be animated")
        if media_type == "image/jpeg" and _count_jpeg_scans(content) > _MAX_JPEG_SCANS:
            raise _build_error(f"must not have more than {_MAX_JPEG_SCANS} scans")
        image.load()
        ImageOps.exif_transpose(image, in_place=True)
        if media_type == "image/jpeg":
            return EncodedImage(media_type, _encode_jpeg(image))
        return EncodedImage(media_type, _encode_png(image))


def _count_jpeg_scans(content: bytes) -> int:
    """How often the first picture in a JPEG file is gone over."""
    scans = position = 0
    while (found := _JPEG_MARKER.search(content, position)) is not None:
        marker, position = found[1][0], found.end()
        if marker == _END_OF_IMAGE:
            break
        scans += marker == _START_OF_SCAN
        # Below are none that a decoder knows; restarts and the start are only markers.
        if marker > _END_OF_IMAGE or 0xC0 <= marker < 0xD0:
            position += int.from_bytes(content[position : position + 2])
    return scans


def _encode_jpeg(image: Image.Image) -> bytes:
    return _save_without_metadata(
        image if image.mode in _JPEG_MODES else image.convert("RGB"), "JPEG"
    )


def _encode_png(image: Image.Image) -> bytes:
    if image.has_transparency_data:
        return _save_without_metadata(image.convert("RGBA"), "PNG")
    return _save_without_metadata(
        image if image.mode in _PNG_MODES else image.convert("RGB"), "PNG"
    )


def _save_without_metadata(image: Image.Image, form: str) -> bytes:
    image.info = {}  # where, when and with what it was taken
    file = io.BytesIO()
    image.save(file, form, quality=_JPEG_QUALITY)
    return file.getvalue()


def _build_too_large_error() -> ImageError:
    return _build_error(f"must not have more than {MAX_PIXELS // 1_000_000} million pixels")


def _build_error(sentence: str) -> ImageError:
    return ImageError(sentence)
