"""Text extraction from generated PDF files."""

import base64
import re
import zlib

_OBJECT = re.compile(rb"(\d+) 0 obj\n(.*?)endobj", re.DOTALL)
_TEXT = re.compile(rb"/(F[0-9]+\+[0-9]+) [0-9.]+ Tf [0-9.]+ TL \(((?:\\.|[^\\)])*)\) Tj", re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


def extract_pages(pdf: bytes) -> list[list[str]]:
    """Return the text fragments of each page in drawing order."""
    objects = {int(number): content for number, content in _OBJECT.findall(pdf)}
    fonts = {
        match[1]: _parse_character_map(_decode_stream(objects[int(match[2])]))
        for content in objects.values()
        if (match := re.search(rb"/Name /(F\S+) .*?/ToUnicode (\d+) 0 R", content, re.DOTALL))
    }
    (kids,) = re.findall(rb"/Kids \[(.*?)\]", pdf, re.DOTALL)
    pages = []
    for number in re.findall(rb"(\d+) 0 R", kids):
        contents = re.search(rb"/Contents (\d+) 0 R", objects[int(number)])
        assert contents is not None
        content_stream = _decode_stream(objects[int(contents[1])])
        pages.append(
            [_decode_text(text, fonts[font]) for font, text in _TEXT.findall(content_stream)]
        )
    return pages


def _decode_stream(content: bytes) -> bytes:
    match = re.search(rb"stream\n(.*?)endstream", content, re.DOTALL)
    assert match is not None
    data = match[1]
    if b"/ASCII85Decode" in content:
        data = base64.a85decode(data.strip().removesuffix(b"~>"))
    return zlib.decompress(data)


def _parse_character_map(mapping: bytes) -> dict[int, str]:
    pairs = re.findall(rb"<([0-9A-F]{2})> <([0-9A-F]{4})>", mapping)
    return {int(code, 16): chr(int(letter, 16)) for code, letter in pairs}


def _decode_text(text: bytes, letters: dict[int, str]) -> str:
    plain = _ESCAPE.sub(
        lambda match: bytes([int(match[1], 8)]) if match[1].isdigit() else match[1], text
    )
    return "".join(letters[code] for code in plain)
