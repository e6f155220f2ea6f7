"""The provider's HTTP: what the business may call, and under `/_fake` what a test may."""

import hmac
import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import parse_qs, unquote

import msgspec

from tapgate.messenger.fake_graph.errors import FakeError
from tapgate.messenger.fake_graph.provider import Failure, Provider, Utterance
from tapgate.service.asgi import AsgiApp
from tapgate.service.http import Request, Response, encode_header

_LARGEST_BODY = 20 * 1024 * 1024
_VERSION = re.compile(r"/v\d+\.\d+(?=/)")
_JSON = encode_header("content-type", "application/json")


class _Number(msgspec.Struct):
    to: str


class _Order(msgspec.Struct):
    order: Literal["sent", "reversed"] = "sent"
    together: bool = False


class App(AsgiApp):
    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def respond(self, request: Request) -> Response:
        body = await request.read_body(_LARGEST_BODY)
        try:
            return await self._answer(request, body)
        except FakeError as error:
            return _json(error.body(), error.status)
        except msgspec.DecodeError as error:
            return _json(FakeError(100, str(error)).body(), 400)

    async def _answer(self, request: Request, body: bytes) -> Response:
        headers = request.headers
        path = unquote(_VERSION.sub("", request.path, count=1))
        if path.startswith("/_fake/"):
            return await self._play(request, path.removeprefix("/_fake/").split("/"), body)
        self._require_token(headers)
        match request.method, path.strip("/").split("/"):
            case "POST", [number, "messages"]:
                self._require_number(number)
                return _json(self._provider.take(msgspec.json.decode(body)))
            case "GET", ["_media", address]:
                return self._file(address)
            case "GET", [media_id]:
                origin = "http://" + headers[b"host"].decode()
                return _json(self._provider.media.look_up(media_id, origin, self._provider.clock()))
        raise FakeError(100, "Unknown path", status=404, subcode=33)

    async def _play(self, request: Request, path: list[str], body: bytes) -> Response:
        provider, headers = self._provider, request.headers
        match request.method, path:
            case "POST", ["media"]:
                kind = headers.get(b"content-type", b"application/octet-stream").decode()
                return _json({"id": provider.media.add(body, kind)})
            case "POST", ["users", who, action]:
                return _json(await self._play_user(_plain(who), action, body))
            case "POST", ["deliver"]:
                wanted = msgspec.json.decode(body or b"{}", type=_Order)
                held = await provider.deliver_held(wanted.order, together=wanted.together)
                return _json({"delivered": held})
            case "POST", ["fail"]:
                provider.failures.append(msgspec.json.decode(body, type=Failure))
                return _json({})
            case "GET", ["sent"]:
                to = parse_qs(request.query.decode().replace("+", "%2B")).get("to")
                return _json({"data": provider.sent_to(to[0]) if to else provider.sent})
        raise FakeError(100, "Unknown path", status=404)

    async def _play_user(self, who: str, action: str, body: bytes) -> dict[str, str]:
        match action:
            case "say":
                said = msgspec.json.decode(body, type=Utterance)
                return {"message_id": await self._provider.say(who, said)}
            case "change-number":
                to = _plain(msgspec.json.decode(body, type=_Number).to)
                return {"message_id": await self._provider.change_number(who, to)}
            case "leave":
                self._provider.leave(who)
                return {}
        raise FakeError(100, "Unknown path", status=404)

    def _require_token(self, headers: Mapping[bytes, bytes]) -> None:
        expected = f"Bearer {self._provider.access_token}".encode()
        if not hmac.compare_digest(headers.get(b"authorization", b""), expected):
            raise FakeError(190, "Invalid OAuth access token - Cannot parse access token")

    def _require_number(self, number: str) -> None:
        if number != self._provider.phone_number_id:
            raise FakeError(100, f"Object with ID '{number}' does not exist", subcode=33)

    def _file(self, address: str) -> Response:
        file = self._provider.media.fetch(address, self._provider.clock())
        if file is None:
            raise FakeError(100, "URL signature expired", status=404)
        return Response(200, encode_header("content-type", file.mime_type), file.content)


def _plain(phone: str) -> str:
    """As the provider writes numbers."""
    return phone.removeprefix("+")


def _json(value: Any, status: int = 200) -> Response:
    return Response(status, _JSON, msgspec.json.encode(value))
