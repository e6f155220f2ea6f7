"""The phone simulator's messenger client. Its requests are signed like the gateway's.

The simulator acts as the messaging provider, but does not need the provider's secrets.
"""

import time
import uuid
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx2
import msgspec

from tapgate.core.settings import Settings
from tapgate.events.notifications.notification_messages import SERVICE_NAME
from tapgate_client.clock import system_clock
from tapgate_client.credentials import ServiceSecret, UnsignedRequest
from tapgate_client.tls import get_tls_context_for

_TIMEOUT: Final = httpx2.Timeout(5, connect=2)
#: Longer than `_TIMEOUT`, because the messenger processes a form before it responds.
_FORM_TIMEOUT: Final = httpx2.Timeout(15, connect=2)
_DELIVERIES_PATH: Final = "/api/v1/simulator/deliveries"
_FLOWS_PATH: Final = "/api/v1/simulator/flows"
_FORM_KEY_PATH: Final = "/api/v1/simulator/form-key"
_OUTBOX_PATH: Final = "/api/v1/messages/outbox"
_MAX_ERROR_LENGTH: Final = 300


class MessengerError(Exception):
    """A request was invalid or failed. The message is shown to the simulator's user.

    `values` fill its placeholders once it is translated.
    """

    def __init__(self, message: str, **values: object) -> None:
        super().__init__(message)
        self.values = values


class _ErrorResponse(msgspec.Struct, frozen=True):
    error: str = ""


class PhoneMessengerClient:
    def __init__(self, settings: Settings) -> None:
        self._url = settings.messenger_url
        self._secret = settings.service_secrets.get(SERVICE_NAME)

    async def deliver(self, phone: str, content: dict[str, Any]) -> None:
        """Deliver a message from a phone in the provider's format."""
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
        """Return the messages sent to a phone, newest first."""
        response = await self._request("GET", _OUTBOX_PATH, query=urlencode({"to": phone}))
        data: list[dict[str, Any]] = _decode(response, dict[str, list[dict[str, Any]]])["data"]
        return data

    async def get_form_key(self) -> str | None:
        """Return the public key for encrypting forms, or None if forms are disabled."""
        response = await self._request("GET", _FORM_KEY_PATH)
        key: str | None = _decode(response, dict[str, str | None])["public_pem"]
        return key

    async def forward_form_request(self, envelope: bytes) -> tuple[int, str]:
        """Forward an encrypted form request; return the status and the encrypted response."""
        response = await self._send("POST", _FLOWS_PATH, body=envelope, http_timeout=_FORM_TIMEOUT)
        if response.status_code == 401:
            raise _build_error(response)
        return response.status_code, response.text

    async def _request(
        self, method: str, path: str, *, query: str = "", body: bytes = b""
    ) -> httpx2.Response:
        response = await self._send(method, path, query=query, body=body)
        if not response.is_success:
            raise _build_error(response)
        return response

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        body: bytes = b"",
        http_timeout: httpx2.Timeout = _TIMEOUT,
    ) -> httpx2.Response:
        url = self._url + path
        headers = self._build_headers(
            UnsignedRequest(method, urlsplit(url).path, query.encode(), body)
        )
        try:
            # No connection pooling: the pauses between requests exceed keep-alive timeouts.
            async with httpx2.AsyncClient(
                timeout=http_timeout, trust_env=False, verify=get_tls_context_for(url)
            ) as http:
                return await http.request(
                    method, f"{url}?{query}" if query else url, content=body, headers=headers
                )
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise MessengerError(
                "The messenger is not responding at {url}. Start it with `make run` or"
                " `tapgate messenger`.",
                url=self._url,
            ) from None
        except (httpx2.HTTPError, TimeoutError):
            raise MessengerError(
                "The messenger did not respond. Your request may have been executed: check the"
                " transaction history before you try again."
            ) from None

    def _build_headers(self, request: UnsignedRequest) -> dict[str, str]:
        if self._secret is None:
            raise MessengerError(
                "TAPGATE_SERVICE_SECRETS has no secret for {service}. Add one, so that the"
                " messenger can authenticate the gateway.",
                service=SERVICE_NAME,
            )
        credential = ServiceSecret(SERVICE_NAME, self._secret)
        signed_headers = credential.build_headers(request, system_clock)
        return {"Content-Type": "application/json", **signed_headers}


def _decode(response: httpx2.Response, response_type: Any) -> Any:
    try:
        return msgspec.json.decode(response.content, type=response_type)
    except msgspec.MsgspecError:
        raise MessengerError(
            "Unexpected response from the messenger. Check TAPGATE_MESSENGER_URL."
        ) from None


def _build_error(response: httpx2.Response) -> MessengerError:
    try:
        message = msgspec.json.decode(response.content, type=_ErrorResponse).error
        message = message[:_MAX_ERROR_LENGTH]
    except msgspec.MsgspecError:
        message = ""
    if response.status_code == 401:
        return MessengerError(
            "The messenger rejected the gateway's signature. Check that both use the same"
            " TAPGATE_SERVICE_SECRETS and that their clocks agree."
        )
    if response.status_code == 404:
        return MessengerError(
            "The messenger has no simulator. It may run in production or be another version."
        )
    return MessengerError(
        "The messenger rejected the request: {reason}.",
        reason=message or f"status {response.status_code}",
    )
