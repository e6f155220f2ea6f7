"""The provider itself: takes messages from the business, and plays the people who write to it."""

import base64
import secrets
from typing import Any, Literal

import msgspec

from tapgate.clock import Clock, system_clock
from tapgate.messenger.fake_graph import shapes
from tapgate.messenger.fake_graph.errors import FakeError
from tapgate.messenger.fake_graph.media import Media
from tapgate.messenger.fake_graph.rules import Gatekeeper, Rules
from tapgate.messenger.fake_graph.webhooks import Webhooks, unix, value_of


class Utterance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person does: exactly one of these, delivered so many times."""

    text: str | None = None
    tap: str | None = None
    button: str | None = None
    image: str | None = None
    flow: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    copies: int = 1
    #: Not delivered before somebody asks for what was held.
    hold: bool = False


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was taken."""

    id: str
    to: str
    at: float
    message: dict[str, Any]


class Failure(msgspec.Struct, kw_only=True):
    """What the next messages are refused with, however good they are."""

    code: int = 131000
    status: int | None = None
    times: int = 1


class Provider:
    def __init__(
        self,
        *,
        access_token: str,
        phone_number_id: str,
        callback: str | None = None,
        app_secret: str | None = None,
        rules: Rules | None = None,
        clock: Clock = system_clock,
    ) -> None:
        rules = rules or Rules()
        self.access_token = access_token
        self.phone_number_id = phone_number_id
        self.clock = clock
        self.media = Media(rules.media_lives)
        self.webhooks = Webhooks(
            callback=callback, app_secret=app_secret, pauses=rules.redeliver_after
        )
        #: What was taken, oldest first.
        self.sent: list[Sent] = []
        self.failures: list[Failure] = []
        self._gatekeeper = Gatekeeper(rules)
        self._held: list[dict[str, Any]] = []

    def take(self, message: Any) -> dict[str, Any]:
        """A message of the business. Raises `FakeError`."""
        self._fail_if_asked_to()
        now = self.clock()
        to = shapes.check(message)
        self._gatekeeper.let_pass(to, message, now)
        sent = Sent(id=_new_message_id(), to=to, at=now.timestamp(), message=message)
        self.sent.append(sent)
        self.webhooks.in_background(self.webhooks.deliver([self._fate(sent)]))
        contact = {"input": message.get("to") or to}
        contact["wa_id" if "to" in message else "user_id"] = to
        return {
            "messaging_product": "whatsapp",
            "contacts": [contact],
            "messages": [{"id": sent.id}],
        }

    def sent_to(self, address: str) -> list[Sent]:
        """`+` or not, a person is who they are."""
        return [sent for sent in self.sent if sent.to == address.removeprefix("+")]

    async def say(self, who: str, said: Utterance) -> str:
        """The id under which it is delivered, each time it is."""
        now = self.clock()
        self._gatekeeper.person(who, now).last_wrote = now
        message = {"id": _new_message_id(), "timestamp": unix(now), **self._content(said)}
        await self._deliver(self._from(who, message), said.copies, hold=said.hold)
        return str(message["id"])

    async def change_number(self, who: str, to: str) -> str:
        system = {"type": "user_changed_number", "body": f"{who} changed to {to}", "wa_id": to}
        return await self.say(who, Utterance(message={"type": "system", "system": system}))

    def leave(self, who: str) -> None:
        self._gatekeeper.person(who, self.clock()).reachable = False

    async def deliver_held(self, order: Literal["sent", "reversed"], *, together: bool) -> int:
        """How many there were."""
        held, self._held = self._held, []
        if order == "reversed":
            held.reverse()
        for delivery in [held] if together and held else [[one] for one in held]:
            await self.webhooks.deliver(delivery)
        return len(held)

    def _fail_if_asked_to(self) -> None:
        if self.failures:
            failure = self.failures[0]
            failure.times -= 1
            if failure.times <= 0:
                self.failures.pop(0)
            raise FakeError(failure.code, "As it was asked to", status=failure.status)

    async def _deliver(self, value: dict[str, Any], copies: int, *, hold: bool) -> None:
        for _ in range(copies):
            if hold:
                self._held.append(value)
            else:
                await self.webhooks.deliver([value])

    def _from(self, who: str, message: dict[str, Any]) -> dict[str, Any]:
        contact: dict[str, Any] = {"profile": {"name": "A person"}}
        if who.isdigit():
            contact["wa_id"] = message["from"] = who
        else:
            contact["user_id"] = message["from_user_id"] = who
        return value_of(self.phone_number_id, contacts=[contact], messages=[message])

    def _fate(self, sent: Sent) -> dict[str, Any]:
        status = {
            "id": sent.id,
            "status": "sent",
            "timestamp": unix(self.clock()),
            "recipient_id": sent.to,
        }
        return value_of(self.phone_number_id, statuses=[status])

    def _content(self, said: Utterance) -> dict[str, Any]:
        if said.text is not None:
            return {"type": "text", "text": {"body": said.text}}
        if said.tap is not None:
            return self._tap(said.tap)
        if said.button is not None:
            return {"type": "button", "button": {"payload": said.button, "text": said.button}}
        if said.image is not None:
            return {"type": "image", "image": self._image(said.image)}
        if said.flow is not None:
            response = msgspec.json.encode(said.flow).decode()
            reply = {"name": "flow", "body": "Sent", "response_json": response}
            return {"type": "interactive", "interactive": {"type": "nfm_reply", "nfm_reply": reply}}
        return said.message or {"type": "unsupported"}

    def _tap(self, tapped: str) -> dict[str, Any]:
        """A row of a list or a button, by the last message that had one with this id."""
        for sent in reversed(self.sent):
            action = sent.message.get("interactive", {}).get("action", {})
            for button in action.get("buttons", ()):
                if button["reply"]["id"] == tapped:
                    return _reply("button_reply", button["reply"])
            for section in action.get("sections", ()):
                for row in section["rows"]:
                    if row["id"] == tapped:
                        return _reply("list_reply", row)
        return _reply("list_reply", {"id": tapped, "title": tapped})

    def _image(self, media_id: str) -> dict[str, Any]:
        file = self.media.file(media_id)
        digest = base64.b64encode(bytes.fromhex(file.sha256)).decode()
        return {"id": media_id, "mime_type": file.mime_type, "sha256": digest}


def _reply(kind: str, tapped: dict[str, Any]) -> dict[str, Any]:
    return {"type": "interactive", "interactive": {"type": kind, kind: tapped}}


def _new_message_id() -> str:
    return "wamid." + base64.b64encode(secrets.token_bytes(24)).decode()
