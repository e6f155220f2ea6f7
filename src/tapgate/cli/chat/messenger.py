"""A running messenger, spoken to over its compatibility endpoint."""

import base64
import re
import unicodedata
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from tapgate.cli.chat.errors import ChatError
from tapgate.cli.chat.pictures import PictureFile

_PATH: Final = "/api/v1/external/messaging"
#: As long as the messenger may itself wait for the gateway, and some more.
_TIMEOUT: Final = httpx2.Timeout(60, connect=10)
_WAIT_SECONDS: Final = 60
_LONGEST_COMPLAINT: Final = 300
_TOKEN: Final = re.compile(r"[!-~]+")
_UNCERTAIN: Final = "what you asked for may have been done, so look at `history` before you repeat"


class _Answer(msgspec.Struct, frozen=True):
    answer: str
    status: str


class _Complaint(msgspec.Struct, frozen=True, rename={"retry_after": "retryAfter"}):
    error: str = ""
    retry_after: int | None = None


class Messenger:
    def __init__(self, url: str, token: str | None) -> None:
        self.url = _checked_url(url)
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {_checked_token(token)}"
        # A connection is not kept, because people think for longer than servers keep one. A proxy
        # has no business between a person and a messenger that is mostly on the same machine.
        self._http = httpx2.Client(
            headers=headers,
            timeout=_TIMEOUT,
            limits=httpx2.Limits(max_keepalive_connections=0),
            trust_env=False,
        )

    def say(self, phone: str, text: str) -> str:
        return self._ask(phone, {"message": text, "messageType": "text"})

    def show(self, phone: str, picture: PictureFile, caption: str) -> str:
        data = base64.b64encode(picture.content).decode()
        media = {
            "data": f"data:{picture.media_type};base64,{data}",
            "mimetype": picture.media_type,
            "filename": picture.name,
            "size": len(picture.content),
        }
        words = {"message": caption} if caption else {}
        return self._ask(phone, {**words, "messageType": "image", "hasMedia": True, "media": media})

    def close(self) -> None:
        self._http.close()

    def _ask(self, phone: str, message: dict[str, Any]) -> str:
        body = {"event": "message", "from": phone, "phoneE164": phone, **message}
        try:
            response = self._http.post(self.url + _PATH, content=msgspec.json.encode(body))
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            sentence = f"the messenger does not answer at {self.url}: start it with `make run`"
            raise ChatError(sentence) from None
        except httpx2.TimeoutException:
            raise ChatError(f"the messenger took too long: {_UNCERTAIN}") from None
        except httpx2.HTTPError:
            raise ChatError(f"the connection to the messenger broke: {_UNCERTAIN}") from None
        if not response.is_success:
            raise ChatError(self._complaint(response))
        try:
            answer = msgspec.json.decode(response.content, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ChatError(self._not_the_messenger()) from None
        return _printable(answer.answer)

    def _complaint(self, response: httpx2.Response) -> str:
        said = _read_complaint(response.content)
        why = " ".join(_printable(said.error).split())[:_LONGEST_COMPLAINT]
        match response.status_code:
            case 401:
                return (
                    "the messenger wants its token: give it with --token, "
                    "or set TAPGATE_MESSENGER_BRIDGE_TOKEN"
                )
            case 403:
                return (
                    "the messenger is not open here: in production it needs "
                    "TAPGATE_MESSENGER_BRIDGE_TOKEN, and --token with the same"
                )
            case 429:
                wait = _WAIT_SECONDS if said.retry_after is None else said.retry_after
                return f"too many messages: wait {wait} seconds"
            case status if status >= 500:
                return f"the messenger failed ({why or status}): try again, or read its log"
            case _ if why:
                return f"the messenger refused it: {why}"
        return self._not_the_messenger()

    def _not_the_messenger(self) -> str:
        return f"what answers at {self.url} is not the messenger: give its address with --url"


def _read_complaint(content: bytes) -> _Complaint:
    try:
        return msgspec.json.decode(content, type=_Complaint)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Complaint()


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # looked at because only then it is checked
        httpx2.URL(url)
    except (ValueError, httpx2.InvalidURL):
        raise ChatError("--url is not a URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ChatError("--url must be a URL that starts with http://")
    return url.rstrip("/")


def _checked_token(token: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise ChatError("--token must be letters, digits and signs, without blanks")
    return token


def _printable(text: str) -> str:
    """Without what would move the cursor or change colours: names are in it that people chose."""
    return "".join(
        sign for sign in text if sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cs")
    )
