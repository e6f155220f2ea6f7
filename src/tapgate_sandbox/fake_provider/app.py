"""Fake provider HTTP application: the provider's API, and test controls at `/_fake`."""

import hmac
import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import parse_qs, unquote

import msgspec

from tapgate.http.http_messages import Request, Response, encode_headers
from tapgate_client.errors import ApiError
from tapgate_sandbox.fake_provider.errors import GraphApiError
from tapgate_sandbox.fake_provider.provider import PlannedFailure, Provider, UserMessage
from tapgate_sandbox.fake_provider.sms import PlannedSmsFailure

_MAX_BODY_BYTES = 20 * 1024 * 1024
_VERSION_PATTERN = re.compile(r"/v\d+\.\d+(?=/)")


class _ChangeNumberBody(msgspec.Struct):
    to: str


class _ReportBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Report about a template, the account or the phone number."""

    field: str
    value: dict[str, Any]


class _DeliverBody(msgspec.Struct):
    order: Literal["sent", "reversed"] = "sent"
    together: bool = False


class _SmsReportBody(msgspec.Struct):
    status: Literal["delivered", "failed"] = "delivered"


class App:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def respond(self, request: Request) -> Response:
        body = await request.read_body(_MAX_BODY_BYTES)
        try:
            return await self._route(request, body)
        except GraphApiError as error:
            return _render_json(error.body(), error.status)
        except msgspec.DecodeError as error:
            return _render_json(GraphApiError(100, str(error)).body(), 400)

    @staticmethod
    def render_error(error: ApiError) -> Response:
        """Render an HTTP protocol error, such as a malformed request."""
        return _render_json(GraphApiError(100, error.message or error.error).body(), error.status)

    async def _route(self, request: Request, body: bytes) -> Response:
        headers = request.headers
        path = unquote(_VERSION_PATTERN.sub("", request.path, count=1))
        if path.startswith("/_fake/sms"):
            return await self._control_sms(request, path.split("/")[3:], body)
        if path.startswith("/_fake/"):
            return await self._control(request, path.removeprefix("/_fake/").split("/"), body)
        if path == "/sms":
            self._require_token(headers, self._provider.sms.token)
            return _render_json({}, await self._provider.sms.receive(body))
        self._require_token(headers, self._provider.access_token)
        match request.method, path.strip("/").split("/"):
            case "POST", [number, "messages"]:
                self._require_number(number)
                return _render_json(self._provider.accept(msgspec.json.decode(body)))
            case "GET", ["_media", url_token]:
                return self._get_file(url_token)
            case "GET", [media_id]:
                origin = "http://" + headers[b"host"].decode()
                return _render_json(
                    self._provider.media.create_url(media_id, origin, self._provider.clock())
                )
        raise GraphApiError(100, "Unknown path", status=404, subcode=33)

    async def _control(self, request: Request, path: list[str], body: bytes) -> Response:
        provider, headers = self._provider, request.headers
        match request.method, path:
            case "POST", ["media"]:
                kind = headers.get(b"content-type", b"application/octet-stream").decode()
                return _render_json({"id": provider.media.add(body, kind)})
            case "POST", ["users", user_id, action]:
                return _render_json(await self._control_user(_strip_plus(user_id), action, body))
            case "POST", ["deliver"]:
                options = msgspec.json.decode(body or b"{}", type=_DeliverBody)
                held = await provider.deliver_held(options.order, together=options.together)
                return _render_json({"delivered": held})
            case "POST", ["fail"]:
                provider.failures.append(msgspec.json.decode(body, type=PlannedFailure))
                return _render_json({})
            case "POST", ["reports"]:
                report = msgspec.json.decode(body, type=_ReportBody)
                return _render_json(
                    {"status": await provider.webhooks.deliver([report.value], report.field)}
                )
            case "GET", ["sent"]:
                to = _get_recipient(request)
                return _render_json({"data": provider.list_sent_to(to) if to else provider.sent})
        raise GraphApiError(100, "Unknown path", status=404)

    async def _control_sms(self, request: Request, path: list[str], body: bytes) -> Response:
        sms = self._provider.sms
        match request.method, path:
            case "GET", []:
                return _render_json({"data": sms.list_messages(_get_recipient(request))})
            case "POST", ["fail"]:
                sms.failures.append(msgspec.json.decode(body, type=PlannedSmsFailure))
                return _render_json({})
            case "POST", [message_id, "report"]:
                report = msgspec.json.decode(body, type=_SmsReportBody)
                return _render_json({"status": await sms.report(message_id, report.status)})
        raise GraphApiError(100, "Unknown path", status=404)

    async def _control_user(self, user_id: str, action: str, body: bytes) -> dict[str, str]:
        match action:
            case "say":
                message = msgspec.json.decode(body, type=UserMessage)
                return {"message_id": await self._provider.send_user_message(user_id, message)}
            case "change-number":
                to = _strip_plus(msgspec.json.decode(body, type=_ChangeNumberBody).to)
                return {"message_id": await self._provider.change_number(user_id, to)}
            case "leave":
                self._provider.make_unreachable(user_id)
                return {}
        raise GraphApiError(100, "Unknown path", status=404)

    def _require_token(self, headers: Mapping[bytes, bytes], token: str) -> None:
        expected = f"Bearer {token}".encode()
        if not hmac.compare_digest(headers.get(b"authorization", b""), expected):
            raise GraphApiError(190, "Invalid OAuth access token - Cannot parse access token")

    def _require_number(self, number: str) -> None:
        if number != self._provider.phone_number_id:
            raise GraphApiError(100, f"Object with ID '{number}' does not exist", subcode=33)

    def _get_file(self, url_token: str) -> Response:
        file = self._provider.media.fetch(url_token, self._provider.clock())
        if file is None:
            raise GraphApiError(100, "URL signature expired", status=404)
        return _render(200, file.mime_type, file.content)


def _get_recipient(request: Request) -> str | None:
    return parse_qs(request.query.decode().replace("+", "%2B")).get("to", [None])[0]


def _strip_plus(phone: str) -> str:
    """Return the number in the provider's format, without `+`."""
    return phone.removeprefix("+")


def _render_json(value: Any, status: int = 200) -> Response:
    return _render(status, "application/json", msgspec.json.encode(value))


def _render(status: int, media_type: str, body: bytes) -> Response:
    headers = {"content-type": media_type, "content-length": str(len(body))}
    return Response(status, encode_headers(headers), body)
