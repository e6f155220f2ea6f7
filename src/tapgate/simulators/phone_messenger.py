"""The messenger, as the phone simulator reaches it: over HTTP like every other service, signed as
the gateway. It plays the provider's part; the provider's own secrets are not needed for it."""

import ssl
import time
import uuid
from functools import cache
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx2
import msgspec

from tapgate import signing
from tapgate.notifications.messages import SERVICE_NAME
from tapgate.settings import Settings

_TIMEOUT: Final = httpx2.Timeout(5, connect=2)
#: What is entered in a form is acted on before it is answered.
_FORM_TIMEOUT: Final = httpx2.Timeout(15, connect=2)
_DELIVERIES_PATH: Final = "/api/v1/simulator/deliveries"
_FLOWS_PATH: Final = "/api/v1/simulator/flows"
_FORM_KEY_PATH: Final = "/api/v1/simulator/form-key"
_OUTBOX_PATH: Final = "/api/v1/messages/outbox"
_MAX_ERROR_LENGTH: Final = 300


class MessengerError(Exception):
    """Why it did not work, in a sentence for whoever holds the simulated phone."""


class _ErrorResponse(msgspec.Struct, frozen=True):
    error: str = ""


class MessengerClient:
    def __init__(self, settings: Settings) -> None:
        self._url = settings.messenger_url
        self._secret = settings.service_secrets.get(SERVICE_NAME)

    async def deliver(self, phone: str, content: dict[str, Any]) -> None:
        """A message of a phone, in the provider's shape."""
        number = phone.removeprefix("+")
        message = {
            "from": number,
            "id": f"wamid.simulated-{uuid.uuid4()}",
            "timestamp": str(int(time.time())),
            **content,
        }
        value = {
            "messaging_product": "whatsapp",
            "contacts": [{"profile": {"name": "Simulator"}, "wa_id": number}],
            "messages": [message],
        }
        change = {"field": "messages", "value": value}
        body = {"object": "whatsapp_business_account", "entry": [{"id": "0", "changes": [change]}]}
        await self._request("POST", _DELIVERIES_PATH, body=msgspec.json.encode(body))

    async def list_outbox(self, phone: str) -> list[dict[str, Any]]:
        """What was sent to a phone, the newest first."""
        answer = await self._request("GET", _OUTBOX_PATH, query=urlencode({"to": phone}))
        data: list[dict[str, Any]] = _decode(answer, dict[str, list[dict[str, Any]]])["data"]
        return data

    async def get_form_key(self) -> str | None:
        """None: there are no forms."""
        answer = await self._request("GET", _FORM_KEY_PATH)
        key: str | None = _decode(answer, dict[str, str | None])["public_pem"]
        return key

    async def forward_form_request(self, envelope: bytes) -> tuple[int, str]:
        """What a form's client and the messenger tell each other. It is encrypted both ways."""
        answer = await self._send("POST", _FLOWS_PATH, body=envelope, patience=_FORM_TIMEOUT)
        if answer.status_code == 401:
            raise MessengerError(_describe_error(answer))
        return answer.status_code, answer.text

    async def _request(
        self, method: str, path: str, *, query: str = "", body: bytes = b""
    ) -> httpx2.Response:
        answer = await self._send(method, path, query=query, body=body)
        if not answer.is_success:
            raise MessengerError(_describe_error(answer))
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        body: bytes = b"",
        patience: httpx2.Timeout = _TIMEOUT,
    ) -> httpx2.Response:
        url = self._url + path
        headers = self._build_headers(method, urlsplit(url).path, query.encode())
        try:
            # A connection is not kept: people think for longer than servers keep one.
            async with httpx2.AsyncClient(
                timeout=patience, trust_env=False, verify=_get_tls_context()
            ) as http:
                return await http.request(
                    method, f"{url}?{query}" if query else url, content=body, headers=headers
                )
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise MessengerError(
                f"The messenger does not answer at {self._url}. Start it with `make run`,"
                " or with `tapgate messenger`."
            ) from None
        except (httpx2.HTTPError, TimeoutError):
            raise MessengerError(
                "The messenger took too long. What you asked for may have been done:"
                " look at the history before you repeat it."
            ) from None

    def _build_headers(self, method: str, path: str, query: bytes) -> dict[str, str]:
        if self._secret is None:
            raise MessengerError(
                f"TAPGATE_SERVICE_SECRETS has no secret for {SERVICE_NAME}, so the messenger"
                " would not know who asks."
            )
        timestamp = str(int(time.time()))
        signature = signing.sign_service(self._secret.encode(), method, path, query, timestamp)
        return {
            "Content-Type": "application/json",
            "X-Service-Name": SERVICE_NAME,
            "X-Service-Timestamp": timestamp,
            "X-Service-Signature": signature,
        }


@cache
def _get_tls_context() -> ssl.SSLContext:
    """Made once: it takes longer than asking does."""
    return ssl.create_default_context()


def _decode(answer: httpx2.Response, kind: Any) -> Any:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except msgspec.MsgspecError:
        raise MessengerError("What answers there is not the messenger.") from None


def _describe_error(answer: httpx2.Response) -> str:
    try:
        said = msgspec.json.decode(answer.content, type=_ErrorResponse).error[:_MAX_ERROR_LENGTH]
    except msgspec.MsgspecError:
        said = ""
    if answer.status_code == 401:
        return (
            "The messenger does not believe the gateway: both need the same"
            " TAPGATE_SERVICE_SECRETS and about the same time."
        )
    if answer.status_code == 404:
        return "The messenger has no simulator: it runs in production, or is another version."
    return f"The messenger refused it: {said or f'status {answer.status_code}'}."
