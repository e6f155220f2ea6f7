"""Phone simulator: a chat with the messenger from any phone number, for system admins only."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.messages import MessageChannel
from tapgate_sandbox.demo.examples import load_example_phone
from tapgate_sandbox.simulators import phone_templates
from tapgate_sandbox.simulators.phone_messenger import MessengerError, PhoneMessengerClient
from tapgate_sandbox.simulators.search import search_records

pages: Final = Pages()

_REQUIRED_ROLE: Final = "system_admin"
_PHONE_PATTERN: Final = re.compile(r"\+[1-9]\d{5,14}", re.ASCII)
_MAX_RESULTS: Final = 8
_SUBSCRIBERS_PATH: Final = "/api/v1/subscribers"
_AGENTS_PATH: Final = "/api/v1/agents"

JsonHandler = Callable[[PageRequest], Awaitable[Any]]
PageHandler = Callable[[PageRequest], Awaitable[Reply[bytes]]]


class TappedOption(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    kind: str


class PhoneMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message from the simulated phone, with exactly one of the optional fields set."""

    sender: str = msgspec.field(name="from")
    text: str | None = None
    tapped: TappedOption | None = None
    picture: str | None = None
    #: Completed form's token.
    form: str | None = None

    def __repr__(self) -> str:
        return "PhoneMessage(...)"  # keeps message contents out of logs


def _json_handler(handler: JsonHandler) -> PageHandler:
    """Wrap a handler to return JSON. A MessengerError becomes a `problem` for the page to show."""

    async def respond(request: PageRequest) -> Reply[bytes]:
        _require_role(request)
        try:
            return request.render_json(await handler(request))
        except MessengerError as error:
            return request.render_json({"problem": request.translate(str(error), **error.values)})

    return respond


def _require_role(request: PageRequest) -> None:
    if request.principal.role != _REQUIRED_ROLE:
        raise ApiError(
            Code.FORBIDDEN,
            "The phone simulator can act as any customer, so only system administrators can use it",
        )


@pages.get("/simulator/phone")
async def render_phone_page(request: PageRequest) -> Reply[bytes]:
    _require_role(request)
    number = request.query.get("phone")
    if number is None or not _PHONE_PATTERN.fullmatch(number):
        number = load_example_phone(request.context.services.settings.data_dir)
    people = [] if number is None else await _search_people(request, number)
    person = next((item for item in people if item["phone"] == number), None)
    return request.render("phone.html", person=person)


@pages.get("/simulator/phone/people")
@_json_handler
async def search_people(request: PageRequest) -> Any:
    return {"people": await _search_people(request, request.query.get("search") or "")}


@pages.get("/simulator/phone/messages")
@_json_handler
async def list_messages(request: PageRequest) -> Any:
    sent = await _create_messenger_client(request).list_outbox(
        _require_phone_number(request.query.get("to"))
    )
    return {"messages": [_to_record(item) for item in reversed(sent) if _has_arrived(item)]}


@pages.post("/simulator/phone/send")
@_json_handler
async def send_message(request: PageRequest) -> Any:
    try:
        sent = msgspec.json.decode(request.context.body, type=PhoneMessage)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise MessengerError("The message is not valid. Reload the page and try again.") from None
    await _create_messenger_client(request).deliver(
        _require_phone_number(sent.sender), _build_provider_message(sent)
    )
    return {}


@pages.get("/simulator/phone/form-key")
@_json_handler
async def get_form_key(request: PageRequest) -> Any:
    return {"key": await _create_messenger_client(request).get_form_key()}


@pages.post("/simulator/phone/form")
@_json_handler
async def submit_form(request: PageRequest) -> Any:
    """Forward the form request unchanged; the page has encrypted it for the messenger."""
    status, body = await _create_messenger_client(request).forward_form_request(
        request.context.body
    )
    return {"status": status, "body": body}


def _create_messenger_client(request: PageRequest) -> PhoneMessengerClient:
    return PhoneMessengerClient(request.context.services.settings)


async def _search_people(request: PageRequest, search: str) -> list[dict[str, str]]:
    """Return the matching subscribers, and then the agents with other numbers."""
    subscribers = await search_records(request, _SUBSCRIBERS_PATH, search, _MAX_RESULTS)
    agents = await search_records(request, _AGENTS_PATH, search, _MAX_RESULTS)
    names = {
        item["phone_number"]: f"{item['first_name']} {item['last_name']}" for item in subscribers
    }
    for item in agents:
        names.setdefault(item["phone_number"], item["business_name"] or item["name"])
    return [{"name": name, "phone": phone} for phone, name in names.items()][:_MAX_RESULTS]


def _require_phone_number(number: str | None) -> str:
    if number is None or not _PHONE_PATTERN.fullmatch(number):
        raise MessengerError(
            "Phone number must start with + and the country code, such as +23276000001."
        )
    return number


def _build_provider_message(sent: PhoneMessage) -> dict[str, Any]:
    """Return the message in the provider's format."""
    if sent.tapped is not None and sent.tapped.kind == "template":
        button = {"payload": sent.tapped.id, "text": sent.tapped.title}
        return {"type": "button", "button": button}
    if sent.tapped is not None:
        kind = "list_reply" if sent.tapped.kind == "list" else "button_reply"
        option = {"id": sent.tapped.id, "title": sent.tapped.title}
        return {"type": "interactive", "interactive": {"type": kind, kind: option}}
    if sent.picture is not None:
        kind = sent.picture.removeprefix("data:").partition(";")[0]
        return {"type": "image", "image": {"data": sent.picture, "mime_type": kind}}
    if sent.form is not None:
        response = msgspec.json.encode({"flow_token": sent.form}).decode()
        reply = {"name": "flow", "body": "Sent", "response_json": response}
        return {"type": "interactive", "interactive": {"type": "nfm_reply", "nfm_reply": reply}}
    return {"type": "text", "text": {"body": sent.text or ""}}


def _has_arrived(message: dict[str, Any]) -> bool:
    """Return whether the phone shows a message. An SMS arrives through its provider."""
    return message["channel"] == MessageChannel.CHAT or message["status"] in ("sent", "delivered")


def _to_record(message: dict[str, Any]) -> dict[str, Any]:
    if message["channel"] == MessageChannel.SMS:
        sms = {"text": phone_templates.render_sms_text(message)}
        # The chat may have shown the message before, under its own ID.
        identifier = f"{message['message_id']}-sms"
        return {
            "id": identifier,
            "at": message["created_at"],
            "parts": [{"type": "sms", "sms": sms}],
        }
    parts = [_render_part(payload) for payload in message.get("payloads") or []]
    return {"id": message["message_id"], "at": message["created_at"], "parts": parts}


def _render_part(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the visible part of a payload in the provider's format, with templates rendered."""
    kind = payload["type"]
    if kind == "template":
        return {"type": kind, kind: phone_templates.render_template(payload[kind])}
    return {"type": kind, kind: payload[kind]}
