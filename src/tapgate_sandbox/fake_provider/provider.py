"""Simulated provider: accepts the business's messages and sends messages on behalf of users."""

import base64
import secrets
from typing import Any, Literal

import msgspec

from tapgate_client.clock import Clock, system_clock
from tapgate_sandbox.fake_provider import message_validation
from tapgate_sandbox.fake_provider.errors import GraphApiError
from tapgate_sandbox.fake_provider.media import MediaStore
from tapgate_sandbox.fake_provider.rules import MessagePolicy, ProviderRules
from tapgate_sandbox.fake_provider.sms import SmsProvider
from tapgate_sandbox.fake_provider.webhooks import CallbackSender, build_value, to_unix_seconds


class UserMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user's message, delivered `copies` times. Only the first content field set is used."""

    text: str | None = None
    tap: str | None = None
    button: str | None = None
    image: str | None = None
    flow: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    copies: int = 1
    #: Held back until `/_fake/deliver` is called.
    hold: bool = False


class SentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that the provider has accepted."""

    id: str
    to: str
    at: float
    message: dict[str, Any]


class PlannedFailure(msgspec.Struct, kw_only=True):
    """An error returned for the next `times` messages, even if they are valid."""

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
        rules: ProviderRules | None = None,
        clock: Clock = system_clock,
        sms: SmsProvider | None = None,
    ) -> None:
        rules = rules or ProviderRules()
        self.access_token = access_token
        self.phone_number_id = phone_number_id
        self.clock = clock
        self.media = MediaStore(rules.media_url_lifetime)
        self.webhooks = CallbackSender(
            callback=callback, app_secret=app_secret, redelivery_delays=rules.redelivery_delays
        )
        #: Accepted messages, oldest first.
        self.sent: list[SentMessage] = []
        self.failures: list[PlannedFailure] = []
        self.sms = sms or SmsProvider(clock=clock)
        self._policy = MessagePolicy(rules)
        self._held: list[dict[str, Any]] = []

    def accept(self, message: Any) -> dict[str, Any]:
        """Accept a message and return the response, or raise `GraphApiError` to reject it."""
        self._raise_planned_failure()
        now = self.clock()
        to = message_validation.validate_message(message)
        self._policy.admit(to, message, now)
        sent = SentMessage(id=_new_message_id(), to=to, at=now.timestamp(), message=message)
        self.sent.append(sent)
        self.webhooks.run_in_background(self.webhooks.deliver([self._build_status_value(sent)]))
        contact = {"input": message.get("to") or to}
        contact["wa_id" if "to" in message else "user_id"] = to
        return {
            "messaging_product": "whatsapp",
            "contacts": [contact],
            "messages": [{"id": sent.id}],
        }

    def list_sent_to(self, address: str) -> list[SentMessage]:
        """Return the messages sent to an address, with or without a leading `+`."""
        return [sent for sent in self.sent if sent.to == address.removeprefix("+")]

    async def send_user_message(self, user_id: str, user_message: UserMessage) -> str:
        """Deliver or hold back a user's message; return its ID, which all copies share."""
        now = self.clock()
        self._policy.get_user(user_id, now).last_message_at = now
        message = {
            "id": _new_message_id(),
            "timestamp": to_unix_seconds(now),
            **self._build_content(user_message),
        }
        value = self._build_user_value(user_id, message)
        for _ in range(user_message.copies):
            if user_message.hold:
                self._held.append(value)
            else:
                await self.webhooks.deliver([value])
        return str(message["id"])

    async def change_number(self, user_id: str, to: str) -> str:
        system = {"type": "user_changed_number", "body": f"{user_id} changed to {to}", "wa_id": to}
        return await self.send_user_message(
            user_id, UserMessage(message={"type": "system", "system": system})
        )

    def make_unreachable(self, user_id: str) -> None:
        self._policy.get_user(user_id, self.clock()).is_reachable = False

    async def deliver_held(self, order: Literal["sent", "reversed"], *, together: bool) -> int:
        """Deliver the messages held back, in one delivery if `together`; return their number."""
        held, self._held = self._held, []
        if order == "reversed":
            held.reverse()
        for delivery in [held] if together and held else [[item] for item in held]:
            await self.webhooks.deliver(delivery)
        return len(held)

    def _raise_planned_failure(self) -> None:
        if self.failures:
            failure = self.failures[0]
            failure.times -= 1
            if failure.times <= 0:
                self.failures.pop(0)
            raise GraphApiError(failure.code, "Simulated failure", status=failure.status)

    def _build_user_value(self, user_id: str, message: dict[str, Any]) -> dict[str, Any]:
        contact: dict[str, Any] = {"profile": {"name": "A person"}}
        if user_id.isdigit():
            contact["wa_id"] = message["from"] = user_id
        else:
            contact["user_id"] = message["from_user_id"] = user_id
        return build_value(self.phone_number_id, contacts=[contact], messages=[message])

    def _build_status_value(self, sent: SentMessage) -> dict[str, Any]:
        status = {
            "id": sent.id,
            "status": "sent",
            "timestamp": to_unix_seconds(self.clock()),
            "recipient_id": sent.to,
        }
        return build_value(self.phone_number_id, statuses=[status])

    def _build_content(self, message: UserMessage) -> dict[str, Any]:
        if message.text is not None:
            return {"type": "text", "text": {"body": message.text}}
        if message.tap is not None:
            return self._build_tap(message.tap)
        if message.button is not None:
            return {"type": "button", "button": {"payload": message.button, "text": message.button}}
        if message.image is not None:
            return {"type": "image", "image": self._build_image(message.image)}
        if message.flow is not None:
            response = msgspec.json.encode(message.flow).decode()
            reply = {"name": "flow", "body": "Sent", "response_json": response}
            return {"type": "interactive", "interactive": {"type": "nfm_reply", "nfm_reply": reply}}
        return message.message or {"type": "unsupported"}

    def _build_tap(self, option_id: str) -> dict[str, Any]:
        """Return the reply for a tapped option, from the latest message with this option ID.

        An unknown option gets a list reply with its ID as the title.
        """
        for sent in reversed(self.sent):
            action = sent.message.get("interactive", {}).get("action", {})
            for button in action.get("buttons", ()):
                if button["reply"]["id"] == option_id:
                    return _build_interactive("button_reply", button["reply"])
            for section in action.get("sections", ()):
                for row in section["rows"]:
                    if row["id"] == option_id:
                        return _build_interactive("list_reply", row)
        return _build_interactive("list_reply", {"id": option_id, "title": option_id})

    def _build_image(self, media_id: str) -> dict[str, Any]:
        file = self.media.get_file(media_id)
        digest = base64.b64encode(bytes.fromhex(file.sha256)).decode()
        return {"id": media_id, "mime_type": file.mime_type, "sha256": digest}


def _build_interactive(kind: str, reply: dict[str, Any]) -> dict[str, Any]:
    return {"type": "interactive", "interactive": {"type": kind, kind: reply}}


def _new_message_id() -> str:
    return "wamid." + base64.b64encode(secrets.token_bytes(24)).decode()
