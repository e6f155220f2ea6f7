"""PIN form from chat to payment: real conversation, lease and outbox, with a fake gateway."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
import structlog

from messenger.conversation.builders import PHONE, PIN, WRONG_PIN, FakeGateway
from messenger.fake_clock import FakeClock
from messenger.flows.builders import FLOW_KEY, PUBLIC_PEM, build_success, dump_tables, split_words
from tapgate import ids
from tapgate.http.throttle import Throttle
from tapgate.messenger import conversation_store, runner
from tapgate.messenger.conversation.keywords import match_command
from tapgate.messenger.flows import data_endpoint, screens
from tapgate.messenger.flows.flow_client import FlowClient
from tapgate.messenger.model.common import Language
from tapgate.messenger.model.events import (
    GatewayUnreachable,
    Intent,
    RequestRejected,
    RequestSucceeded,
    TextMessage,
)
from tapgate.messenger.model.gateway_requests import GatewayRequest
from tapgate.messenger.model.replies import OptionList, OutgoingMessage, PinForm, TextReply
from tapgate.messenger.outbox.sealing import open_message
from tapgate.messenger.services import Services
from tapgate.runtime import logs
from tapgate.settings import load_settings
from tapgate.store.database import Database
from tapgate.vault import Vault


class ChatDriver:
    def __init__(self, database: Database, folder: Path) -> None:
        self.gateway = FakeGateway()
        self.is_unreachable = False
        self.clock = FakeClock()
        settings = load_settings({"TAPGATE_DATA_DIR": str(folder)})
        self.services = Services(
            settings=settings,
            database=database,
            vault=Vault(settings.secret_key),
            clock=self.clock,
            new_id=ids.IdGenerator(7),
            process_id=7,
            gateway=self,
            resolve_intent=self._resolve_intent,
            throttle=Throttle(settings),
            flow_key=FLOW_KEY,
        )

    async def perform(
        self, request: GatewayRequest
    ) -> RequestSucceeded | RequestRejected | GatewayUnreachable:
        await asyncio.sleep(0.01)  # simulates network latency
        return (
            GatewayUnreachable(uncertain=False)
            if self.is_unreachable
            else self.gateway.handle(request)
        )

    async def send_text(self, text: str) -> None:
        services = self.services
        async with conversation_store.acquire(services.database, PHONE, self.clock()) as held:
            turn = await runner.run_turn(services, held, TextMessage(text=text), "webhook")
            async with services.database.transaction() as tx:
                await runner.save_turn(tx, services, held, turn, heard_until=0)

    async def drive_to_pin_form(self) -> str:
        for text in ("send money", "AM-1001", "500", "yes"):
            await self.send_text(text)
        form = (await self.list_sent())[-1]
        assert isinstance(form, PinForm)
        return form.token

    async def list_sent(self) -> list[OutgoingMessage]:
        rows = await self.services.database.fetch(
            "SELECT id, content FROM messenger.outbox WHERE address = $1 ORDER BY id", PHONE
        )
        return [open_message(self.services.vault, row["id"], row["content"]) for row in rows]

    async def submit_pin(self, token: str, pin: str) -> tuple[int, dict[str, Any]]:
        client = FlowClient(PUBLIC_PEM)
        request = {"action": "data_exchange", "flow_token": token, "data": {"pin": pin}}
        body = client.encrypt(request)
        status, text = await data_endpoint.handle(self.services, body, runner.submit_form)
        return status, client.decrypt(text)

    @staticmethod
    async def _resolve_intent(text: str, language: Language | None) -> Intent:
        return Intent(command=match_command(text))


@pytest.fixture
def chat(database: Database, tmp_path: Path) -> ChatDriver:
    return ChatDriver(database, tmp_path)


FORM_EXPIRED = (427, {"error_msg": screens.get_error_text("en", "expired")})


async def test_correct_pin_pays_once_and_the_receipt_is_sent_in_the_chat(chat: ChatDriver) -> None:
    token = await chat.drive_to_pin_form()
    before = len(await chat.list_sent())
    assert await chat.submit_pin(token, PIN) == build_success(token)
    assert len(chat.gateway.payments) == 1
    receipt = (await chat.list_sent())[before]
    assert isinstance(receipt, TextReply | OptionList)
    assert "Aminata K." in receipt.text
    assert await chat.submit_pin(token, PIN) == FORM_EXPIRED
    assert len(chat.gateway.payments) == 1


async def test_concurrent_submissions_pay_once(
    chat: ChatDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Submissions wait for each other's lease, which takes longer on a slow machine.
    monkeypatch.setattr(runner, "_FORM_LEASE_TIMEOUT_SECONDS", 30.0)
    token = await chat.drive_to_pin_form()
    responses = await asyncio.gather(*(chat.submit_pin(token, PIN) for _ in range(4)))
    assert sorted(status for status, _ in responses) == [200, 427, 427, 427]
    assert len(chat.gateway.payments) == 1


async def test_wrong_pin_is_shown_on_the_screen_and_not_in_the_chat(chat: ChatDriver) -> None:
    token = await chat.drive_to_pin_form()
    before = len(await chat.list_sent())
    status, response = await chat.submit_pin(token, WRONG_PIN)
    assert (status, response["screen"]) == (200, "PIN")
    assert "You have 2 tries left" in response["data"]["error_message"]
    assert len(await chat.list_sent()) == before
    assert await chat.submit_pin(token, PIN) == build_success(token)


async def test_form_stays_usable_while_the_gateway_is_unreachable(chat: ChatDriver) -> None:
    token, chat.is_unreachable = await chat.drive_to_pin_form(), True
    status, response = await chat.submit_pin(token, PIN)
    assert (status, response["screen"]) == (200, "PIN")
    assert response["data"]["error_message"]
    chat.is_unreachable = False
    assert await chat.submit_pin(token, PIN) == build_success(token)
    assert len(chat.gateway.payments) == 1


async def test_payment_canceled_in_the_chat_cannot_be_submitted(chat: ChatDriver) -> None:
    token = await chat.drive_to_pin_form()
    await chat.send_text("cancel")
    assert await chat.submit_pin(token, PIN) == FORM_EXPIRED
    assert chat.gateway.payments == []


async def test_form_expires_after_five_minutes(chat: ChatDriver) -> None:
    token = await chat.drive_to_pin_form()
    chat.clock.advance(minutes=5)
    assert await chat.submit_pin(token, PIN) == FORM_EXPIRED
    assert chat.gateway.payments == []


async def test_no_pin_is_logged_stored_or_sent(chat: ChatDriver) -> None:
    lines, before = io.BytesIO(), structlog.get_config()
    logs.configure(lines)
    try:
        token = await chat.drive_to_pin_form()
        await chat.submit_pin(token, WRONG_PIN)
        await chat.submit_pin(token, PIN)
    finally:
        structlog.configure(**before)
    sent = [repr(message) for message in await chat.list_sent()]
    stored = await dump_tables(chat.services.database)
    assert any("Aminata" in row for row in sent)
    assert any(PHONE in row for row in stored)
    for pin in (PIN, WRONG_PIN):
        for text in (lines.getvalue().decode(), *sent, *stored):
            assert pin not in split_words(text)
