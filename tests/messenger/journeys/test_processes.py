"""End-to-end journey over real processes.

Messages pass through a fake provider over HTTP, with signed deliveries and encrypted forms. The
test kills the messenger processes, and teardown searches for leaked secrets.
"""

import asyncio
import io
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from PIL import Image

from drivers.forked import start_forked
from drivers.messenger import FLOWS_PATH, FlowClient, build_flow_key
from drivers.processes import (
    ACCESS_TOKEN,
    ADMIN,
    BRIDGE_TOKEN,
    GRAPH_APP_SECRET,
    TAPGATE_EXECUTABLE,
    VERIFY_TOKEN,
    RunningServices,
    free_port,
    run_provider,
    run_services,
)
from secret_leaks.detector import LeakDetector
from tapgate.core.settings import load_settings
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.postgres_programs import find_programs_dir
from tapgate_client import AsyncTapgateClient, Login, signing
from tapgate_sandbox.fake_provider.provider import Provider, UserMessage

PIN, NEW_PIN, WRONG_PIN = "7391", "8351", "5938"


class ProviderUser:
    """User who sends messages through the provider and reads the messages sent to them."""

    def __init__(
        self, number: str, provider: Provider, running: RunningServices, db: Database
    ) -> None:
        self.number = number
        self.wa_id = number.removeprefix("+")
        self._provider = provider
        self._running = running
        self._database = db
        self._read_count = 0

    async def send_text(self, text: str, **options: Any) -> str:
        return await self.send_message(UserMessage(text=text, **options))

    async def send_message(self, message: UserMessage) -> str:
        await self._provider.send_user_message(self.wa_id, message)
        return await self.read_replies()

    async def tap_option(self, title: str) -> str:
        for sent in reversed(self._provider.list_sent_to(self.number)):
            for option in list_options(sent.message):
                if option["title"] == title:
                    return await self.send_message(UserMessage(tap=option["id"]))
        raise AssertionError(f"no option has the title {title}")

    async def read_replies(self) -> str:
        """Wait until all messages from this user are processed and sent; return the new ones."""
        async with asyncio.timeout(60):
            while await self._database.fetchval(
                """SELECT EXISTS (SELECT FROM messenger.received
                                  WHERE address = $1 AND status = 'waiting')
                       OR EXISTS (SELECT FROM messenger.outbox
                                  WHERE address = $1 AND status = 'waiting')""",
                self.number,
            ):
                await asyncio.sleep(0.02)
        sent = self._provider.list_sent_to(self.number)
        new, self._read_count = sent[self._read_count :], len(sent)
        return "\n".join(json.dumps(message.message, ensure_ascii=False) for message in new)

    async def submit_form(self, **fields: str) -> tuple[int, dict[str, Any]]:
        """Submit the newest form; on success, send the message that reports its completion."""
        token = next(
            sent.message["interactive"]["action"]["parameters"]["flow_token"]
            for sent in reversed(self._provider.list_sent_to(self.number))
            if sent.message.get("interactive", {}).get("type") == "flow"
        )
        flow_client = FlowClient(build_flow_key()[1])
        body = flow_client.encrypt(
            {"version": "3.0", "action": "data_exchange", "flow_token": token, "data": fields}
        )
        signature = "sha256=" + signing.webhook_signature(GRAPH_APP_SECRET.encode(), body)
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
            response = await client.post(
                self._running.messenger + FLOWS_PATH,
                content=body,
                headers={"X-Hub-Signature-256": signature},
            )
        screen = flow_client.decrypt(response.text)
        if screen.get("screen") == "SUCCESS":
            params = screen["data"]["extension_message_response"]["params"]
            await self._provider.send_user_message(self.wa_id, UserMessage(flow=params))
        return response.status_code, screen


def list_options(message: dict[str, Any]) -> list[dict[str, Any]]:
    action = message.get("interactive", {}).get("action", {})
    rows = [row for section in action.get("sections", ()) for row in section["rows"]]
    return rows + [button["reply"] for button in action.get("buttons", ())]


@pytest.fixture
async def running_services(
    leak_detector: LeakDetector, public_tmp_path: Path, database_url: str, database: Database
) -> AsyncIterator[tuple[RunningServices, Provider, AsyncTapgateClient]]:
    port = free_port()
    for secret in (ACCESS_TOKEN, GRAPH_APP_SECRET, VERIFY_TOKEN, BRIDGE_TOKEN):
        leak_detector.add_secret("a secret of the channel", secret)
    callback = f"http://127.0.0.1:{port}/api/v1/webhooks/messaging"
    async with (
        run_provider(callback) as (provider, graph_url),
        run_services(
            public_tmp_path,
            database_url,
            messenger_port=port,
            graph_url=graph_url,
            workers=2,
            fork_workers=False,
        ) as running,
        AsyncTapgateClient(running.gateway, Login(ADMIN["email"], ADMIN["password"])) as gateway,
    ):
        leak_detector.add_settings_secrets(
            load_settings({"TAPGATE_DATA_DIR": str(public_tmp_path / "data")})
        )
        yield running, provider, gateway
        leak_detector.add_processes()
        for service in (running.gateway, running.messenger):
            async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
                metrics = await client.get(f"{service}/metrics")
            leak_detector.add_source(f"metrics of {service}", metrics.content)
    leak_detector.add_source("logs", running.read_log())
    leak_detector.add_folder(public_tmp_path / "data")


async def test_wallet_can_be_used_in_the_chat_despite_duplicates_and_a_messenger_crash(
    running_services: tuple[RunningServices, Provider, AsyncTapgateClient],
    public_tmp_path: Path,
    database_url: str,
    database: Database,
    leak_detector: LeakDetector,
) -> None:
    running, provider, gateway = running_services
    mary = ProviderUser("+23276100001", provider, running, database)
    john = ProviderUser("+23276100002", provider, running, database)

    # Both register with a form, each in their own language.
    await mary.send_text("hello")
    await mary.send_text("register")
    await mary.send_text("Mary Sesay")
    await mary.send_text("yes")
    assert (await mary.submit_form(new_pin=PIN, repeated_pin=PIN))[1]["screen"] == "SUCCESS"
    assert "Mary" in await mary.read_replies()
    await john.send_text("bonjour")
    await john.send_text("inscription")
    await john.send_text("John Kamara")
    await john.send_text("oui")
    assert (await john.submit_form(new_pin=NEW_PIN, repeated_pin=NEW_PIN))[1]["screen"] == "SUCCESS"
    await john.read_replies()
    subscribers = {item.phone_number: item async for item in gateway.subscribers.list()}
    assert set(subscribers) == {mary.number, john.number}
    assert subscribers[mary.number].language == "en"
    assert subscribers[john.number].language == "fr"

    # John links a card, and Mary's wallet is funded.
    await gateway.cards.upload(b"Serial No.,MAC Address\nTAP-900001,04:A1:B2:C3:D4:E5:F6\n")
    await john.send_text("lier une carte")
    await john.send_text("TAP-900001")
    assert (await john.submit_form(pin=NEW_PIN))[1]["screen"] == "SUCCESS"
    assert "TAP-900001" in await john.send_text("mes cartes")
    partner = await gateway.partners.create(name="Top-ups", overdraft_limit="10000.00")
    await gateway.partners.fund_from_partner(
        subscriber_id=subscribers[mary.number].id,
        partner_id=partner.partner.id,
        partner_reference="first",
        amount="1000.00",
    )

    # Mary pays John, with one wrong PIN and with every chat message delivered three times.
    assert "1,000.00 SLE" in await mary.send_text("balance", copies=3)
    await mary.send_text("send money", copies=3)
    await mary.send_text(john.number, copies=3)
    text = await mary.send_text("200", copies=3)
    for part in ("John K.", "200.00 SLE", "3.00 SLE", "203.00 SLE"):
        assert part in text
    await mary.send_text("yes", copies=3)
    status, screen = await mary.submit_form(pin=WRONG_PIN)
    assert (status, screen["screen"]) == (200, "PIN")
    assert (await mary.submit_form(pin=PIN))[1]["screen"] == "SUCCESS"
    assert (await mary.submit_form(pin=PIN))[0] == 427
    assert "797.00 SLE" in await mary.read_replies()

    # The gateway's notifications are sent through the messenger.
    await wait_for_notification(john, "money_received")
    await gateway.subscribers.request_pin_reset(subscribers[john.number].id)
    await wait_for_notification(john, "one_time_code")
    status, output = await run_command(
        public_tmp_path, database_url, "messages", "--to", john.number
    )
    assert (status, "one_time_code: " in output) == (0, True)

    assert "200,00" in await john.send_text("solde")

    # Mary sends her PIN in chat messages, and both use other commands.
    await mary.send_text(f"my pin is {PIN}")
    await mary.send_text(PIN)
    for command in ("history", "limits", "cards", "help", "statement", "1", "talk to a person"):
        assert await mary.send_text(command)
    await mary.send_text("change pin")
    result = await mary.submit_form(pin=PIN, new_pin=NEW_PIN, repeated_pin=NEW_PIN)
    assert result[1]["screen"] == "SUCCESS"
    image_file = io.BytesIO()
    Image.new("RGB", (50, 50)).save(image_file, "PNG")
    await mary.send_text("kyc")
    await mary.send_text("1")
    await mary.send_message(
        UserMessage(image=provider.media.add(image_file.getvalue(), "image/png"))
    )
    documents = gateway.subscribers.list_kyc_documents(subscribers[mary.number].id)
    assert [entry.document_type async for entry in documents] == ["id_front"]
    await john.send_text("langue")
    await john.send_text("1")
    assert "Your latest transactions" in await john.send_text("balance")

    # Kill the messenger after the acknowledgment, while the paused gateway does not respond.
    running.send_signal("gateway", signal.SIGSTOP)
    await provider.send_user_message(mary.wa_id, UserMessage(text="balance"))
    await wait_for_first_attempt(database, mary.number)
    running.send_signal("messenger", signal.SIGKILL)
    running.send_signal("gateway", signal.SIGCONT)
    assert "797.00 SLE" in await mary.read_replies()

    # The ledger is consistent. The leak detector searches for the PINs at teardown.
    assert (await run_command(public_tmp_path, database_url, "verify"))[0] == 0
    assert all(pin in leak_detector.secrets for pin in (PIN, NEW_PIN, WRONG_PIN))
    leak_detector.add_source("dump", dump_database(database_url))
    sent = json.dumps([message.message for message in provider.sent], ensure_ascii=False)
    assert len(sent) > 1000, "the provider received too little to search"
    leak_detector.add_pin_source("messages at the provider", sent)


async def test_each_acknowledged_message_is_handled_once_although_messengers_are_killed(
    running_services: tuple[RunningServices, Provider, AsyncTapgateClient], database: Database
) -> None:
    running, provider, _ = running_services
    phones = [f"+2327620000{number}" for number in range(4)]
    for count in (4, 8):
        await wait_until(lambda: is_ready(running.messenger))
        running.send_signal("gateway", signal.SIGSTOP)
        for phone in phones:
            await provider.send_user_message(phone.removeprefix("+"), UserMessage(text="balance"))
        async with asyncio.timeout(30):
            while await count_messages(database) < count:
                await asyncio.sleep(0.05)
        running.send_signal("messenger", signal.SIGKILL)
        running.send_signal("gateway", signal.SIGCONT)
    async with asyncio.timeout(60):
        while await count_messages(database, "handled") < count:
            await asyncio.sleep(0.05)
    rows = await database.fetch(
        "SELECT address, count(*) AS replies FROM messenger.outbox GROUP BY address"
    )
    assert {row["address"]: row["replies"] for row in rows} == dict.fromkeys(phones, 2)


async def is_ready(url: str) -> bool:
    async with httpx2.AsyncClient(trust_env=False) as client:
        try:
            return (await client.get(f"{url}/ready")).status_code == 200
        except httpx2.TransportError:
            return False


async def count_messages(database: Database, status: str = "%") -> int:
    count: int = await database.fetchval(
        "SELECT count(*) FROM messenger.received WHERE status LIKE $1", status
    )
    return count


async def wait_for_notification(person: ProviderUser, template: str) -> None:
    """Wait at most 30 seconds for a message to the user with this template."""
    async with asyncio.timeout(30):
        while template not in await person.read_replies():
            await asyncio.sleep(0.05)


async def wait_until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not await condition():
            await asyncio.sleep(0.02)


async def wait_for_first_attempt(database: Database, address: str) -> None:
    """Wait at most 30 seconds until the newest message from the address is being handled."""
    newest: tuple[object, ...] = ()
    try:
        async with asyncio.timeout(30):
            while newest != ("waiting", 1):
                await asyncio.sleep(0.02)
                row = await database.fetchrow(
                    """SELECT status, attempts FROM messenger.received
                       WHERE address = $1 ORDER BY id DESC LIMIT 1""",
                    address,
                )
                newest = tuple(row or ())
    except TimeoutError:
        raise AssertionError(f"the newest message is {newest}") from None


async def run_command(folder: Path, database_url: str, *arguments: str) -> tuple[int, str]:
    """Run a `tapgate` command and return its exit status and output."""
    variables = {"TAPGATE_DATA_DIR": str(folder / "data"), "TAPGATE_DATABASE_URL": database_url}
    process = await start_forked(
        TAPGATE_EXECUTABLE,
        *arguments,
        env=os.environ | variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


def dump_database(database_url: str) -> str:
    """Dump the whole database, as a backup does."""
    return subprocess.run(
        [find_programs_dir() / "pg_dump", "--inserts", database_url],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
