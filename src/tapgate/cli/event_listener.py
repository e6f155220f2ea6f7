"""`tapgate listen`: forward events to a local URL, signed like webhooks.

The command creates a paused webhook endpoint, so that the gateway queues its events without sending
them. It reads them over the API, so the gateway need not be able to reach the URL.
"""

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import Final

import msgspec

from tapgate.core import private_files
from tapgate.core.settings import Settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.events.webhooks import model
from tapgate.events.webhooks.sender import NoResponseError, WebhookSender
from tapgate_client import (
    ApiConnectionError,
    ApiError,
    AsyncTapgateClient,
    Login,
    NotFoundError,
    RateLimitedError,
    ServerError,
    TapgateError,
    UnavailableError,
    ids,
)
from tapgate_client.clock import Clock, system_clock
from tapgate_client.schemas.webhooks import (
    WebhookDelivery,
    WebhookDeliveryStatus,
    WebhookEndpointStatus,
    WebhookEndpointWithSecret,
)

POLL_SECONDS: Final = 1.0
_DELETE_TIMEOUT_SECONDS: Final = 5.0
_RETRYABLE_ERRORS: Final = (ApiConnectionError, UnavailableError, ServerError, RateLimitedError)
_PAGE_SIZE: Final = 100


def get_login(settings: Settings, first_admin_path: Path) -> Login:
    """Return the credentials in the settings, or else the generated first admin's credentials."""
    if settings.admin_email is not None and settings.admin_password is not None:
        return Login(settings.admin_email, settings.admin_password)
    if first_admin_path.exists():
        email, password = private_files.read(first_admin_path)
        return Login(email, password)
    raise SettingsError(
        "set TAPGATE_ADMIN_EMAIL and TAPGATE_ADMIN_PASSWORD to the credentials of a system admin"
    )


async def listen(url: str, login: Login, forward_to: str, events: list[str]) -> None:
    """Forward events until the process is interrupted or terminated."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        async with AsyncTapgateClient(url, login) as client:
            await Listener(client, forward_to, events).run(stop)
    except TapgateError as error:
        raise SettingsError(_describe(error, url)) from error


def _describe(error: TapgateError, url: str) -> str:
    if isinstance(error, ApiConnectionError):
        return f"cannot connect to {url}. Start Tapgate, or name its address with --url"
    if isinstance(error, ApiError):
        return f"{error.code}: {error.message or 'the request failed'}"
    return str(error)


class Listener:
    """A temporary webhook endpoint, and the events forwarded from it."""

    def __init__(
        self,
        client: AsyncTapgateClient,
        forward_to: str,
        events: list[str],
        clock: Clock = system_clock,
    ) -> None:
        self._webhooks = client.webhooks
        self._forward_to = forward_to
        self._events = events
        self._clock = clock
        self._sender = WebhookSender(public_only=False)
        self._seen: set[str] = set()
        self._is_connected = True

    async def run(self, stop: asyncio.Event) -> None:
        endpoint = await self._webhooks.create_endpoint(url=self._forward_to, events=self._events)
        try:
            await self._webhooks.update_endpoint(endpoint.id, status=WebhookEndpointStatus.PAUSED)
            print(f"Forwarding events to {self._forward_to}. Press Ctrl-C to stop.")
            print(f"Signing secret: {endpoint.secret}", flush=True)
            while not stop.is_set():
                await self._poll(endpoint)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await stop.wait()
        finally:
            self._sender.close_idle()
            await self._delete(endpoint.id)

    async def _poll(self, endpoint: WebhookEndpointWithSecret) -> None:
        """Forward new events. If the gateway is unavailable, they are forwarded later."""
        try:
            for delivery in await self._list_new(endpoint.id):
                await self._forward(endpoint, delivery)
                self._seen.add(delivery.id)
        except _RETRYABLE_ERRORS:
            if self._is_connected:
                print("Connection to Tapgate lost. Retrying.", flush=True)
            self._is_connected = False
        except NotFoundError as error:
            raise SettingsError("the webhook endpoint of this command was deleted") from error
        else:
            if not self._is_connected:
                print("Connected again.", flush=True)
            self._is_connected = True

    async def _list_new(self, endpoint_id: str) -> list[WebhookDelivery]:
        """Return deliveries that were not forwarded yet, oldest first."""
        found: list[WebhookDelivery] = []
        known = 0
        async for delivery in self._webhooks.list_deliveries(endpoint_id, limit=_PAGE_SIZE):
            if delivery.id not in self._seen:
                found.append(delivery)
            else:
                known += 1
            if known >= _PAGE_SIZE:  # events become visible slightly out of order
                break
        return found[::-1]

    async def _forward(
        self, endpoint: WebhookEndpointWithSecret, delivery: WebhookDelivery
    ) -> None:
        if delivery.status != WebhookDeliveryStatus.PENDING:
            result = f"{delivery.last_status or 'no response'} (sent by the gateway)"
        else:
            result = await self._send(endpoint, delivery.id)
        print(
            f"{self._clock():%H:%M:%S}  {delivery.event:<26}  {delivery.id}  {result}", flush=True
        )

    async def _send(self, endpoint: WebhookEndpointWithSecret, delivery_id: str) -> str:
        details = await self._webhooks.get_delivery(endpoint.id, delivery_id)
        if details.payload is None:
            return "not sent: the record no longer exists"
        body = msgspec.json.encode(details.payload)
        number = ids.decode(ids.DELIVERY, delivery_id) or 0
        headers = model.build_headers(number, [endpoint.secret], body, self._clock())
        try:
            response = await self._sender.send(self._forward_to, headers, body)
        except NoResponseError as error:
            return f"no response: {error}"
        return f"{response.status} ({response.duration_ms} ms)"

    async def _delete(self, endpoint_id: str) -> None:
        try:
            async with asyncio.timeout(_DELETE_TIMEOUT_SECONDS):
                await self._webhooks.delete_endpoint(endpoint_id)
        except (TapgateError, TimeoutError):
            print(f"Webhook endpoint {endpoint_id} could not be deleted. Delete it in the console.")
        else:
            print("Stopped.")
