"""A PIN form from the chat to the payment: the conversation, its lease and the outbox are the real
ones, the gateway is a model of it."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
import structlog

from messenger.conversation.stage import PHONE, PIN, WRONG_PIN, Gateway
from messenger.flows.stage import KEY, PUBLIC_PEM, everything_stored, success, words
from messenger.set_clock import SetClock
from tapgate import ids
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
from tapgate.service import logs
from tapgate.service.throttle import Throttle
from tapgate.settings import load_settings
from tapgate.store.database import Database
from tapgate.vault import Vault


class Chat:
    def __init__(self, database: Database, folder: Path) -> None:
        self.gateway = Gateway()
        self.away = False
        self.clock = SetClock()
        settings = load_settings({"TAPGATE_DATA_DIR": str(folder)})
        self.services = Services(
            settings=settings,
            database=database,
            vault=Vault(settings.secret_key),
            clock=self.clock,
            new_id=ids.IdGenerator(7),
            process_id=7,
            gateway=self,
            resolve_intent=self._understand,
            throttle=Throttle(settings),
            flow_key=KEY,
        )

    async def perform(
        self, call: GatewayRequest
    ) -> RequestSucceeded | RequestRejected | GatewayUnreachable:
        await asyncio.sleep(0.01)  # as if it were far away
        return GatewayUnreachable(uncertain=False) if self.away else self.gateway.answer(call)

    async def say(self, text: str) -> None:
        services = self.services
        async with conversation_store.acquire(services.database, PHONE, self.clock()) as held:
            turn = await runner.run_turn(services, held, TextMessage(text=text), "webhook")
            async with services.database.transaction() as tx:
                await runner.save_turn(tx, services, held, turn, heard_until=0)

    async def until_pin(self) -> str:
        for text in ("send money", "AM-1001", "500", "yes"):
            await self.say(text)
        form = (await self.sent())[-1]
        assert isinstance(form, PinForm)
        return form.token

    async def sent(self) -> list[OutgoingMessage]:
        rows = await self.services.database.fetch(
            "SELECT id, content FROM messenger.outbox WHERE address = $1 ORDER BY id", PHONE
        )
        return [open_message(self.services.vault, row["id"], row["content"]) for row in rows]

    async def submit(self, token: str, pin: str) -> tuple[int, dict[str, Any]]:
        client = FlowClient(PUBLIC_PEM)
        request = {"action": "data_exchange", "flow_token": token, "data": {"pin": pin}}
        body = client.encrypt(request)
        status, text = await data_endpoint.handle(self.services, body, runner.submit_form)
        return status, client.decrypt(text)

    @staticmethod
    async def _understand(text: str, language: Language | None) -> Intent:
        return Intent(command=match_command(text))


@pytest.fixture
def chat(database: Database, tmp_path: Path) -> Chat:
    return Chat(database, tmp_path)


ENDED = (427, {"error_msg": screens.get_error_text("en", "ended")})


async def test_a_right_pin_pays_once_and_the_receipt_comes_by_chat(chat: Chat) -> None:
    token = await chat.until_pin()
    before = len(await chat.sent())
    assert await chat.submit(token, PIN) == success(token)
    assert len(chat.gateway.payments) == 1
    receipt = (await chat.sent())[before]
    assert isinstance(receipt, TextReply | OptionList)
    assert "Aminata K." in receipt.text
    assert await chat.submit(token, PIN) == ENDED
    assert len(chat.gateway.payments) == 1


async def test_submitted_twice_at_once_it_is_paid_once(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each waits for the one before, however busy the machine is.
    monkeypatch.setattr(runner, "_FORM_LEASE_TIMEOUT_SECONDS", 30.0)
    token = await chat.until_pin()
    answers = await asyncio.gather(*(chat.submit(token, PIN) for _ in range(4)))
    assert sorted(status for status, _ in answers) == [200, 427, 427, 427]
    assert len(chat.gateway.payments) == 1


async def test_a_wrong_pin_is_told_on_the_screen_and_not_in_the_chat(chat: Chat) -> None:
    token = await chat.until_pin()
    before = len(await chat.sent())
    status, answer = await chat.submit(token, WRONG_PIN)
    assert (status, answer["screen"]) == (200, "PIN")
    assert "Tries left: 2" in answer["data"]["error_message"]
    assert len(await chat.sent()) == before
    assert await chat.submit(token, PIN) == success(token)


async def test_while_the_gateway_is_away_the_form_stays(chat: Chat) -> None:
    token, chat.away = await chat.until_pin(), True
    status, answer = await chat.submit(token, PIN)
    assert (status, answer["screen"]) == (200, "PIN")
    assert answer["data"]["error_message"]
    chat.away = False
    assert await chat.submit(token, PIN) == success(token)
    assert len(chat.gateway.payments) == 1


async def test_what_was_cancelled_in_the_chat_cannot_be_paid(chat: Chat) -> None:
    token = await chat.until_pin()
    await chat.say("cancel")
    assert await chat.submit(token, PIN) == ENDED
    assert chat.gateway.payments == []


async def test_a_form_outlives_neither_its_time_nor_the_conversation(chat: Chat) -> None:
    token = await chat.until_pin()
    chat.clock.forward(minutes=5)
    assert await chat.submit(token, PIN) == ENDED
    assert chat.gateway.payments == []


async def test_no_pin_is_logged_or_stored(chat: Chat) -> None:
    lines, before = io.BytesIO(), structlog.get_config()
    logs.configure(lines)
    try:
        token = await chat.until_pin()
        await chat.submit(token, WRONG_PIN)
        await chat.submit(token, PIN)
    finally:
        structlog.configure(**before)
    sent = [repr(message) for message in await chat.sent()]
    stored = await everything_stored(chat.services.database)
    assert any("Aminata" in row for row in sent)
    assert any(PHONE in row for row in stored)
    for pin in (PIN, WRONG_PIN):
        for text in (lines.getvalue().decode(), *sent, *stored):
            assert pin not in words(text)
