"""Client for the messenger's compatibility endpoint."""

import base64
import re
import unicodedata
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from tapgate.cli.chat.errors import ChatError
from tapgate.cli.chat.images import LocalImage
from tapgate_client.tls import get_tls_context_for

_MESSAGING_PATH: Final = "/api/v1/external/messaging"
#: Longer than the messenger may wait for the gateway.
_TIMEOUT: Final = httpx2.Timeout(60, connect=10)
_DEFAULT_RETRY_AFTER_SECONDS: Final = 60
_MAX_ERROR_LENGTH: Final = 300
_TOKEN_PATTERN: Final = re.compile(r"[!-~]+")
_OUTCOME_UNKNOWN_TEXT: Final = (
    "your request may have been processed, so check `history` before you try again"
)


class _MessengerResponse(msgspec.Struct, frozen=True):
    answer: str
    status: str


class _ErrorResponse(msgspec.Struct, frozen=True, rename={"retry_after": "retryAfter"}):
    error: str = ""
    retry_after: int | None = None


class MessengerClient:
    def __init__(self, url: str, token: str | None) -> None:
        self.url = _validate_url(url)
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {_validate_token(token)}"
        # Disable keep-alive, since users pause for longer than servers keep idle connections open.
        # Ignore proxy settings, since the messenger usually runs on the same machine.
        self._http = httpx2.Client(
            headers=headers,
            timeout=_TIMEOUT,
            limits=httpx2.Limits(max_keepalive_connections=0),
            trust_env=False,
            verify=get_tls_context_for(self.url),
        )

    def send_text(self, phone: str, text: str) -> str:
        return self._post_message(phone, {"message": text, "messageType": "text"})

    def send_image(self, phone: str, image: LocalImage, caption: str) -> str:
        data = base64.b64encode(image.content).decode()
        media = {
            "data": f"data:{image.media_type};base64,{data}",
            "mimetype": image.media_type,
            "filename": image.name,
            "size": len(image.content),
        }
        caption_field = {"message": caption} if caption else {}
        return self._post_message(
            phone, {**caption_field, "messageType": "image", "hasMedia": True, "media": media}
        )

    def close(self) -> None:
        self._http.close()

    def _post_message(self, phone: str, message: dict[str, Any]) -> str:
        body = {"event": "message", "from": phone, "phoneE164": phone, **message}
        try:
            response = self._http.post(
                self.url + _MESSAGING_PATH, content=msgspec.json.encode(body)
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            text = f"cannot connect to the messenger at {self.url}: start it with `make run`"
            raise ChatError(text) from None
        except httpx2.TimeoutException:
            raise ChatError(f"the messenger timed out: {_OUTCOME_UNKNOWN_TEXT}") from None
        except httpx2.HTTPError:
            raise ChatError(
                f"the connection to the messenger was lost: {_OUTCOME_UNKNOWN_TEXT}"
            ) from None
        if not response.is_success:
            raise ChatError(self._describe_error(response))
        try:
            reply = msgspec.json.decode(response.content, type=_MessengerResponse)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ChatError(self._describe_wrong_service()) from None
        return _strip_control_characters(reply.answer)

    def _describe_error(self, response: httpx2.Response) -> str:
        text = _decode_error(response.content)
        reason = " ".join(_strip_control_characters(text.error).split())[:_MAX_ERROR_LENGTH]
        match response.status_code:
            case 401:
                return (
                    "the messenger requires a token: use --token, "
                    "or set TAPGATE_MESSENGER_BRIDGE_TOKEN"
                )
            case 403:
                return (
                    "the messenger rejects bridges: in production, start it with "
                    "TAPGATE_MESSENGER_BRIDGE_TOKEN and use the same --token"
                )
            case 429:
                retry_after = (
                    _DEFAULT_RETRY_AFTER_SECONDS if text.retry_after is None else text.retry_after
                )
                return f"too many messages: try again in {retry_after} seconds"
            case status if status >= 500:
                return f"the messenger failed ({reason or status}): try again, or check its log"
            case _ if reason:
                return f"the messenger rejected the message: {reason}"
        return self._describe_wrong_service()

    def _describe_wrong_service(self) -> str:
        return f"the server at {self.url} is not a messenger: set the right URL with --url"


def _decode_error(content: bytes) -> _ErrorResponse:
    try:
        return msgspec.json.decode(content, type=_ErrorResponse)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _ErrorResponse()


def _validate_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # reading the property validates the port
        httpx2.URL(url)
    except (ValueError, httpx2.InvalidURL):
        raise ChatError("--url is not a valid URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ChatError("--url must start with http:// or https://")
    return url.rstrip("/")


def _validate_token(token: str) -> str:
    if not _TOKEN_PATTERN.fullmatch(token):
        raise ChatError("--token must consist of ASCII characters without spaces")
    return token


def _strip_control_characters(text: str) -> str:
    """Remove characters that move the cursor or change colors.

    Replies contain names chosen by users.
    """
    return "".join(
        char for char in text if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs")
    )
