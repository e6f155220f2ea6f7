"""Uploaded files: the part `file` of a multipart form, or the raw request body."""

from typing import Any, Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from tapgate_client.errors import ApiError, Code, invalid_field

FORM_TYPE: Final = "multipart/form-data"
#: Far above the few parts of an ordinary form.
MAX_PARTS: Final = 100


def build_form_schema(
    title: str,
    description: str = "The CSV file, in the same format as a `text/csv` body",
    content_type: str = "text/csv",
) -> dict[str, Any]:
    """Return the request body schema of a form with a file, for the OpenAPI document."""
    return {
        "schema": {
            "type": "object",
            "title": title,
            "required": ["file"],
            "properties": {
                "file": {
                    "type": "string",
                    "format": "binary",
                    "description": description,
                }
            },
        },
        "encoding": {"file": {"contentType": content_type}},
    }


def extract_file(content_type: str | None, body: bytes) -> bytes:
    """Return the part `file` of a form, or a body that is not a form."""
    kind, options = parse_options_header(content_type)
    if kind != FORM_TYPE.encode():
        return body
    files = FilePartCollector()
    try:
        parser = MultipartParser(
            options.get(b"boundary", b""),
            {
                "on_part_begin": files.begin_part,
                "on_header_field": files.add_header_name,
                "on_header_value": files.add_header_value,
                "on_header_end": files.end_header,
                "on_part_data": files.add_data,
                "on_end": files.finish,
            },
        )
        parser.write(body)
    except FormParserError:
        raise _form_error("body", "must be a valid multipart form") from None
    if not files.is_complete:
        raise _form_error("body", "must be a valid multipart form")
    if len(files.files) != 1:
        raise _form_error("file", "must appear once" if files.files else "is required")
    return bytes(files.files[0])


class FilePartCollector:
    """Collects the form parts named `file`."""

    def __init__(self) -> None:
        self.files: list[bytearray] = []
        self.is_complete = False
        self._part_count = 0
        self._header_name = b""
        self._header_value = b""
        self._is_file_part = False

    def begin_part(self) -> None:
        self._part_count += 1
        if self._part_count > MAX_PARTS:
            raise _form_error("body", f"must have at most {MAX_PARTS} parts")
        self._is_file_part = False

    def add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            _, options = parse_options_header(self._header_value)
            self._is_file_part = options.get(b"name") == b"file"
            if self._is_file_part:
                self.files.append(bytearray())
        self._header_name = self._header_value = b""

    def add_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file_part:
            self.files[-1] += data[start:end]

    def finish(self) -> None:
        self.is_complete = True


def _form_error(field: str, message: str) -> ApiError:
    return invalid_field(field, message, Code.INVALID_REQUEST)
