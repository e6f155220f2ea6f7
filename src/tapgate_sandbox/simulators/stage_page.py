"""Stage: the terminal, two phones and the live ledger on one page, in development only."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from tapgate.core.settings.nodes import Environment
from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.transactions import Channel
from tapgate_sandbox.demo.examples import load_example_people
from tapgate_sandbox.simulators import pos
from tapgate_sandbox.simulators.stage_calls import render_call

pages: Final = Pages()

_TRANSACTIONS_PATH: Final = "/api/v1/transactions"
_ENTRIES_PATH: Final = "/api/v1/transactions/{id}/entries"
_ALERTS_PATH: Final = "/api/v1/compliance/alerts"
_CHAT_CHANNEL: Final = Channel.MESSAGING
_MAX_TRANSACTIONS: Final = 6
_PHONES: Final = 2
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
#: Longest code to render; a longer body is not a request of the stage.
_MAX_CALL_BYTES: Final = 4096


class StageRequest(msgspec.Struct, frozen=True):
    """A request that the terminal has sent."""

    path: str
    body: dict[str, Any]


@pages.get("/stage")
async def render_stage(request: PageRequest) -> Reply[bytes]:
    await _require_stage(request)
    settings = request.context.services.settings
    people = load_example_people(settings.data_dir)
    values = await pos.build_terminal_values(request)
    if len(people) < _PHONES or not values["merchants"]:
        return request.render("stage_empty.html")
    origin = _get_origin(request)
    return request.render(
        "stage.html",
        people=people[:_PHONES],
        cloned=next(
            (person for person in people if person.card in values["signing_serials"]), None
        ),
        phone_links=[_build_phone_link(origin, person.phone) for person in people[:_PHONES]],
        is_local=(urlsplit(origin).hostname or "") in _LOCAL_HOSTS,
        **values,
    )


async def _require_stage(request: PageRequest) -> None:
    """Require development and a system admin: the page can act as any customer."""
    if request.context.services.settings.environment != Environment.DEVELOPMENT:
        raise ApiError(Code.NOT_FOUND)
    await request.require_access("POST /api/v1/processors/{id}/keys")


def _get_origin(request: PageRequest) -> str:
    """Return the origin at which the reader sees the page."""
    settings = request.context.services.settings
    scheme = urlsplit(settings.public_url or "").scheme or "http"
    return f"{scheme}://{request.context.get_header(b'host') or 'localhost'}"


def _build_phone_link(origin: str, phone: str) -> dict[str, str]:
    """Return the link that opens a customer's phone on another device, with a QR code."""
    import segno  # noqa: PLC0415 - only this page needs it

    url = f"{origin}/simulator/phone?{urlencode({'phone': phone})}"
    code = segno.make(url, micro=False, error="m").svg_data_uri(scale=4, border=2, light="white")
    return {"url": url, "qr_code": code}


@pages.get("/stage/feed")
async def load_feed(request: PageRequest) -> Reply[bytes]:
    """Return the newest transactions after one, with their entries, and the alert for a card."""
    await _require_stage(request)
    after, card = request.query.get("after") or "", request.query.get("card")
    listed = (await request.get(_TRANSACTIONS_PATH, {"limit": _MAX_TRANSACTIONS}))["data"]
    # IDs sort by time.
    records = [record for record in listed if record["id"] > after]
    transactions = []
    for record in records:  # one at a time, because several pages may poll
        entries = (await request.get(_ENTRIES_PATH, id=record["id"]))["entries"]
        call = await _build_chat_call(request, record)
        transactions.append(_describe_transaction(record, entries, call))
    alert = await _find_alert(request, card)
    return request.render_json({"transactions": transactions, "alert": alert})


async def _find_alert(request: PageRequest, card: str | None) -> dict[str, Any] | None:
    if not card:
        return None
    found = (await request.get(_ALERTS_PATH, {"card_serial": card, "limit": 1}))["data"]
    return {"id": found[0]["id"], "created_at": found[0]["created_at"]} if found else None


def _describe_transaction(
    record: Mapping[str, Any], entries: list[dict[str, Any]], call: Any
) -> dict[str, Any]:
    fields = ("id", "type", "status", "amount", "currency", "created_at", "failure_code", "channel")
    return {
        **{name: record[name] for name in fields},
        "from": (record["from"] or {}).get("name"),
        "to": (record["to"] or {}).get("name"),
        "entries": [
            {
                "debit": _name(item["debit"]),
                "credit": _name(item["credit"]),
                "amount": item["amount"],
            }
            for item in entries
        ],
        "call": call,
    }


def _name(side: Mapping[str, Any]) -> str:
    return str(side["name"] or side["kind"].replace("_", " "))


async def _build_chat_call(request: PageRequest, record: Mapping[str, Any]) -> Any:
    """Return the messenger's call that made a transfer, or None for other transactions."""
    if record["type"] != "transfer_p2p" or record["channel"] != _CHAT_CHANNEL:
        return None
    recipient = await request.get("/api/v1/subscribers/{id}", id=record["to"]["id"])
    values = {
        "request_id": record["request_id"],
        "sender_id": record["from"]["id"],
        "recipient_phone_number": recipient["phone_number"],
        "amount": record["amount"],
        "pin": "",
    }
    return msgspec.to_builtins(render_call("/api/v1/wallet/transfer-p2p", values))


@pages.post("/stage/call")
async def show_call(request: PageRequest) -> Reply[bytes]:
    """Return the code of a request that the terminal has sent."""
    await _require_stage(request)
    body = request.context.body
    try:
        sent = msgspec.json.decode(body[:_MAX_CALL_BYTES], type=StageRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ApiError(Code.INVALID_REQUEST) from None
    call = render_call(sent.path, sent.body)
    if call is None:
        raise ApiError(Code.NOT_FOUND)
    return request.render_json(msgspec.to_builtins(call))
