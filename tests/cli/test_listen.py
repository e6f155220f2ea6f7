"""`tapgate listen` forwards signed events, and `tapgate trigger` sends sample events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from drivers.in_process import NO_BACKOFF, AppTransport
from drivers.processes import run_command_on
from drivers.webhooks import WebhookReceiver, publish_event, publish_ledger_event
from harness import PRODUCTION_ENVIRON, Harness
from tapgate.cli import event_listener
from tapgate.cli.event_listener import Listener, get_login
from tapgate.cli.trigger import trigger_event
from tapgate.core.settings.declaration import SettingsError
from tapgate.http.api.services import Services
from tapgate.server.gateway import create_app
from tapgate.server.gateway_installation import get_first_admin_path
from tapgate_client import AccessToken, AsyncTapgateClient
from tapgate_client.schemas.webhooks import WEBHOOK_EVENT_TYPES


class FailingTransport(AppTransport):
    """Transport whose connection fails while `is_down` is set."""

    is_down = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.is_down:
            raise httpx2.ConnectError("refused")
        return await super().handle_async_request(request)


@pytest.fixture
def transport(services: Services) -> FailingTransport:
    return FailingTransport(create_app(services))


@pytest.fixture(autouse=True)
def _poll_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_listener, "POLL_SECONDS", 0.01)


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    receiver = WebhookReceiver()
    async with receiver.listen():
        yield receiver


@asynccontextmanager
async def run_listener(
    harness: Harness, transport: FailingTransport, url: str
) -> AsyncIterator[asyncio.Task[None]]:
    """Run the listener, and require that it stops without an error."""
    token = AccessToken((await harness.create_admin()).credential)
    client = AsyncTapgateClient("http://gateway", token, http=transport, retries=NO_BACKOFF)
    stop = asyncio.Event()
    task = asyncio.create_task(Listener(client, url, ["*"]).run(stop))
    async with asyncio.timeout(60):
        while not await harness.database.fetchval(
            "SELECT EXISTS (SELECT FROM webhook_endpoints WHERE status = 'paused')"
        ):
            assert not task.done(), task.exception()
            await asyncio.sleep(0.01)
        yield task
        stop.set()
        await task


async def wait_for(receiver: WebhookReceiver, count: int) -> None:
    async with asyncio.timeout(60):
        while len(receiver.received) < count:
            await asyncio.sleep(0.01)


async def test_events_are_forwarded_signed_and_once(
    harness: Harness,
    services: Services,
    transport: FailingTransport,
    receiver: WebhookReceiver,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await harness.create_subscriber(balance="5.00")
    transaction_id = await harness.database.fetchval("SELECT max(id) FROM transactions")
    output = ""
    async with run_listener(harness, transport, receiver.url):
        await publish_event(services)
        await wait_for(receiver, 1)
        transport.is_down = True
        await publish_ledger_event(services, "transaction.completed", transaction_id)
        while "Retrying." not in output:
            await asyncio.sleep(0.01)
            output += capsys.readouterr().out
        assert len(receiver.received) == 1
        transport.is_down = False
        await wait_for(receiver, 2)
    output += capsys.readouterr().out
    secret = output.partition("Signing secret: ")[2].split()[0]
    assert all(request.is_signed_with(secret) for request in receiver.received)
    first, second = receiver.received
    assert first.content["type"] == "card.linked"
    assert (second.content["type"], second.content["data"]["amount"]) == (
        "transaction.completed",
        "5.00",
    )
    lines = output.splitlines()
    assert any("card.linked" in line and "204 (" in line for line in lines)
    assert "Connection to Tapgate lost. Retrying." in lines and "Connected again." in lines
    assert lines[-1] == "Stopped."
    stored = await harness.database.fetchval(
        "SELECT bool_and(deleted_at IS NOT NULL) FROM webhook_endpoints"
    )
    assert stored


async def test_unreachable_url_is_reported(
    harness: Harness,
    services: Services,
    transport: FailingTransport,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = ""
    async with run_listener(harness, transport, "http://127.0.0.1:1/hook"):
        await publish_event(services)
        while "no response: " not in output:
            await asyncio.sleep(0.01)
            output += capsys.readouterr().out
    assert "card.linked" in output


async def test_deleted_endpoint_ends_the_command(
    harness: Harness, transport: FailingTransport, receiver: WebhookReceiver
) -> None:
    with pytest.raises(SettingsError, match="was deleted"):
        async with run_listener(harness, transport, receiver.url) as task:
            await harness.database.execute("UPDATE webhook_endpoints SET deleted_at = now()")
            await asyncio.wait([task])


def test_credentials_come_from_the_settings_or_the_generated_file(services: Services) -> None:
    path = get_first_admin_path(services.settings.data_dir)
    with pytest.raises(SettingsError, match="TAPGATE_ADMIN_EMAIL"):
        get_login(services.settings, path)
    path.write_text("ada@example.com\nsecret words\n")
    path.chmod(0o600)
    assert get_login(services.settings, path).email == "ada@example.com"


async def test_every_event_can_be_triggered_without_records(
    harness: Harness,
    services: Services,
    transport: FailingTransport,
    receiver: WebhookReceiver,
) -> None:
    async with run_listener(harness, transport, receiver.url):
        for event in WEBHOOK_EVENT_TYPES:
            assert "for 1 endpoint." in await trigger_event(services, event)
        await wait_for(receiver, len(WEBHOOK_EVENT_TYPES))
    assert {request.content["type"] for request in receiver.received} == set(WEBHOOK_EVENT_TYPES)


async def test_triggered_event_contains_the_newest_record(
    harness: Harness,
    services: Services,
    transport: FailingTransport,
    receiver: WebhookReceiver,
) -> None:
    await harness.create_subscriber(balance="17.00")
    async with run_listener(harness, transport, receiver.url):
        result = await run_command_on(services, "trigger", "transaction.failed")
        assert "Queued transaction.failed (txn_" in result.stdout, result.stderr
        await wait_for(receiver, 1)
    data = receiver.received[0].content["data"]
    assert (data["amount"], data["status"]) == ("17.00", "failed")


async def test_trigger_lists_the_events_and_names_missing_endpoints(services: Services) -> None:
    listed = await run_command_on(services, "trigger")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(WEBHOOK_EVENT_TYPES)
    wrong = await run_command_on(services, "trigger", "card.lost")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("tapgate: there is no event card.lost. The events are:\n")
    assert "card.blocked" in wrong.stderr
    unheard = await run_command_on(services, "trigger", "card.blocked")
    assert unheard.stdout.startswith("No webhook endpoint subscribes to card.blocked.")
    production = await run_command_on(services, "trigger", "card.blocked", **PRODUCTION_ENVIRON)
    assert "cannot be triggered in staging and production" in production.stderr
