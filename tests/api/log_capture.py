"""Capture of the log lines of this process, in their output format."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from tapgate.runtime import logs


class LogCapture:
    def __init__(self) -> None:
        self.stream = io.BytesIO()

    @property
    def text(self) -> str:
        return self.stream.getvalue().decode()

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def log_capture() -> Iterator[LogCapture]:
    saved = logging.root.handlers[:], logging.root.level, structlog.get_config()
    capture = LogCapture()
    logs.configure(capture.stream)
    # A logger first used here must not stay bound to this stream.
    structlog.configure(**structlog.get_config() | {"cache_logger_on_first_use": False})
    yield capture
    logs._stream = None
    logging.root.handlers[:], logging.root.level = saved[0], saved[1]
    structlog.configure(**saved[2])
