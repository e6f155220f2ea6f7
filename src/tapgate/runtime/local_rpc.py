"""Requests between a node's processes, over a Unix socket.

A frame is a msgpack message after its length. The accepting process greets with an
empty frame: the kernel also accepts connections for a process that hangs or restarts.
"""

import asyncio
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from tapgate_client.errors import ApiError, Code

_SIZE_BYTES: Final = 4
GREETING: Final = (0).to_bytes(_SIZE_BYTES)
#: A process that neither greets nor responds for this long is unresponsive. Longer than the
#: database timeout, after which a ledger batch fails.
RESPONSE_TIMEOUT_SECONDS: Final = 10.0

_encoder: Final = msgspec.msgpack.Encoder()


class Failure(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=True):
    """Error that the requesting process raises."""

    code: Code
    message: str | None
    details: dict[str, Any] | None
    headers: dict[str, str]

    @classmethod
    def from_error(cls, error: ApiError) -> Self:
        details = msgspec.to_builtins(error.details, str_keys=True, enc_hook=str)
        return cls(error.code, error.message, details, dict(error.headers))

    def to_error(self) -> ApiError:
        return ApiError(self.code, self.message, details=self.details, headers=self.headers)


def encode_frame(message: object) -> bytes:
    data = _encoder.encode(message)
    return len(data).to_bytes(_SIZE_BYTES) + data


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """Return the next message, or None if the other process has closed the connection."""
    try:
        size = int.from_bytes(await reader.readexactly(_SIZE_BYTES))
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, OSError):
        return None


async def connect(
    path: Path | str,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    """Connect to a process, or return None if none greets in time."""
    writer, is_greeted = None, False
    try:
        async with asyncio.timeout(RESPONSE_TIMEOUT_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            is_greeted = await read_frame(reader) is not None
    except OSError:  # also TimeoutError
        return None
    finally:
        if writer is not None and not is_greeted:
            writer.close()
    return (reader, writer) if is_greeted else None
