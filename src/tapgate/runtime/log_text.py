"""Log lines for people at a terminal: one short line per request and event."""

import os
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tapgate.core.settings.logs import LogFormat

_COLORS: Final = {2: "32", 3: "36", 4: "33", 5: "31"}  # by the first status digit
_LEVEL_COLORS: Final = {"warning": "33", "error": "31"}
_STDERR: Final = 2
_HIDDEN_FIELDS: Final = frozenset({"event", "level", "time", "failure"})


def is_text(log_format: str) -> bool:
    """Return whether this process logs text, given the setting."""
    return log_format == "text" or (log_format == LogFormat.AUTO and os.isatty(_STDERR))


def render_request(method: str, endpoint: str, status: int, ms: float, request_id: str) -> bytes:
    """Render a request. The ID is shown for server errors, whose other lines have it too."""
    text = f"{_now()} {_color(str(status), _COLORS.get(status // 100))} {method:<6} {endpoint}"
    suffix = f"  request_id={request_id}" if status >= 500 else ""
    return f"{text}  {ms:.0f} ms{suffix}\n".encode()


def render_event(event: Mapping[str, Any]) -> bytes:
    """Render an event, with each stack frame on a separate line."""
    level = str(event.get("level", "info"))
    fields = [
        f"{name}={_format(value)}" for name, value in event.items() if name not in _HIDDEN_FIELDS
    ]
    name = _color(str(event.get("event", "")), _LEVEL_COLORS.get(level))
    lines = [" ".join([_now(), name, *fields])]
    failure = event.get("failure")
    if isinstance(failure, Mapping):
        lines += [f"    {line}" for part in ("types", "frames") for line in failure.get(part, ())]
    return "\n".join(lines).encode()


def _format(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, enc_hook=lambda item: type(item).__name__).decode()


def _now() -> str:
    return time.strftime("%H:%M:%S")


def _color(text: str, code: str | None) -> str:
    if code is None or "NO_COLOR" in os.environ or not os.isatty(_STDERR):
        return text
    return f"\x1b[{code}m{text}\x1b[0m"
