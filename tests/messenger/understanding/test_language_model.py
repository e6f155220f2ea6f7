"""Optional language model over real HTTP: it can name a command and nothing else."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from cases import each
from tapgate.messenger.understanding.language_model import IntentService
from tapgate.messenger.understanding.resolver import resolve

UNKNOWN_TEXT = "could the machine kindly do its thing"

WriteResponse = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def run_model_server(reply: WriteResponse) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    requests: list[dict[str, Any]] = []
    done = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            requests.append(msgspec.json.decode(await reader.readexactly(length)))
            await reply(writer)
            await writer.drain()
            if reply is never_respond:
                await done.wait()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/understand", requests
    finally:
        done.set()
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0)


def respond_with(content: bytes, *headers: str, status: str = "200 OK") -> WriteResponse:
    async def write(writer: asyncio.StreamWriter) -> None:
        head = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", "Connection: close"]
        writer.write("\r\n".join([*head, *headers, "", ""]).encode() + content)

    return write


async def never_respond(writer: asyncio.StreamWriter) -> None:
    """Accept the request and never respond."""


async def resolve_with_model(
    reply: WriteResponse, text: str = UNKNOWN_TEXT, timeout_seconds: float = 30.0
) -> Any:
    async with run_model_server(reply) as (url, requests):
        understanding = IntentService(url, timeout_seconds=timeout_seconds)
        intent = await understanding.resolve_intent(text, "en")
        await understanding.close()
        return intent, requests


async def test_model_can_name_a_command() -> None:
    intent, requests = await resolve_with_model(respond_with(b'{"command": "limits"}'))
    assert intent.command == "limits"
    assert requests[0]["text"] == UNKNOWN_TEXT
    assert requests[0]["language"] == "en"
    assert "balance" in requests[0]["commands"]
    assert not {"yes", "no"} & set(requests[0]["commands"])


@each(
    "reply",
    [
        respond_with(b'{"command": "yes"}'),
        respond_with(b'{"command": "no"}'),
        respond_with(b'{"command": "drop_tables"}'),
        respond_with(b'{"command": null}'),
        respond_with(b'{"command": ["send"]}'),
        respond_with(b'{"command": "send", "amount": "500"}'),
        respond_with(b'["send"]'),
        respond_with(b"send"),
        respond_with(b""),
        respond_with(b"\xff\xfe"),
        respond_with(b"[" * 4000),
        respond_with(b'{"command": "limits"' + b" " * 100_000 + b"}"),
        respond_with(gzip.compress(b'{"command": "limits"}'), "Content-Encoding: gzip"),
        respond_with(b'{"command": "limits"}', status="500 Oops"),
        respond_with(b'{"command": "limits"}', status="201 Created"),
        respond_with(b"", "Location: http://127.0.0.1:9/", status="302 Found"),
    ],
)
async def test_invalid_model_response_falls_back_to_the_resolver(reply: WriteResponse) -> None:
    intent, requests = await resolve_with_model(reply)
    assert len(requests) == 1
    assert intent == resolve(UNKNOWN_TEXT, "en")


async def test_model_timeout_or_connection_failure_falls_back_to_the_resolver() -> None:
    for timeout_seconds in (0.05, 1.0, 30.0):
        intent, requests = await resolve_with_model(never_respond, timeout_seconds=timeout_seconds)
        assert intent == resolve(UNKNOWN_TEXT, "en")
        if requests:  # the request was sent before the timeout
            break
    assert len(requests) == 1
    async with run_model_server(never_respond) as (url, _):
        pass
    understanding = IntentService(url)
    intent = await understanding.resolve_intent(UNKNOWN_TEXT, "en")
    assert intent == resolve(UNKNOWN_TEXT, "en")
    await understanding.close()


@each("text", ["my pin is 4071", "4 0 7 1", "yes", "Menu", "oui", "send money"])
async def test_text_with_a_pin_or_keyword_is_not_sent_to_the_model(text: str) -> None:
    intent, requests = await resolve_with_model(respond_with(b'{"command": "limits"}'), text)
    assert requests == []
    assert intent == resolve(text, "en")


async def test_digits_are_masked_before_they_are_sent_to_the_model() -> None:
    _, requests = await resolve_with_model(
        respond_with(b'{"command": "send"}'), "kindly forward 1500 to +23276123456, ٤٠ or ② \ud800"
    )
    assert requests[0]["text"] == "kindly forward #### to +###########, ## or # ?"


async def test_resolver_is_used_without_a_model() -> None:
    understanding = IntentService(None)
    assert await understanding.resolve_intent("my balance", None) == resolve("my balance", None)
    await understanding.close()
