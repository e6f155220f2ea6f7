"""POS terminal simulator: lists terminals and cards, and issues signing keys.

The terminal itself is a script in the browser, which signs and sends requests like a real terminal.
Only administrative operations go through these pages.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from tapgate.core.settings.nodes import Environment
from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client import money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.card_proofs import CardAuthenticity
from tapgate_client.schemas.cards import CardStatus
from tapgate_sandbox.demo import examples
from tapgate_sandbox.simulators.search import search_records
from tapgate_sandbox.software_card import load_chip_keys

pages: Final = Pages()

_PROCESSORS_PATH: Final = "/api/v1/processors"
_TERMINALS_PATH: Final = "/api/v1/processors/{id}/terminals"
_KEYS_PATH: Final = "/api/v1/processors/{id}/keys"

#: Merchant for the test terminal that simulator users can create.
_SIMULATOR_MERCHANT_NAME: Final = "Simulator"
_SIMULATOR_MERCHANT: Final = {
    "name": _SIMULATOR_MERCHANT_NAME,
    "phone_number": "+23276000000",
    "email": "simulator@example.com",
}

_MAX_CARDS: Final = 8
_MAX_PEOPLE: Final = 4


@pages.get("/simulator/pos")
async def render_terminal_page(request: PageRequest) -> Reply[bytes]:
    await request.require_access(
        f"POST {_KEYS_PATH}",
        message="The POS simulator creates a signing key, which your role does not allow",
    )
    return request.render("pos.html", **await build_terminal_values(request))


async def build_terminal_values(request: PageRequest) -> dict[str, Any]:
    """Return what the templates of the terminal show."""
    merchants = await _list_merchants(request)
    settings, people = request.context.services.settings, _load_example_people(request)
    return {
        "merchants": [merchant for merchant in merchants if merchant["terminals"]],
        "has_test_terminal": any(
            merchant["name"] == _SIMULATOR_MERCHANT_NAME for merchant in merchants
        ),
        "decimals": money.get_decimals(settings.currency),
        "examples": people,
        "signing_serials": await _find_signing_serials(request, people),
    }


async def _list_merchants(request: PageRequest) -> list[dict[str, Any]]:
    """Return the newest processors with their terminals; both lists start with the active ones."""
    processors = (await request.get(_PROCESSORS_PATH))["data"]
    terminal_lists = await asyncio.gather(
        *(request.get(_TERMINALS_PATH, id=item["id"]) for item in processors)
    )
    merchants = [
        {**entry, "terminals": sorted(terminals["data"], key=_is_inactive)}
        for entry, terminals in zip(processors, terminal_lists, strict=True)
    ]
    return sorted(merchants, key=_is_inactive)


def _is_inactive(record: dict[str, Any]) -> bool:
    return bool(record["status"] != "active")


def _load_example_people(request: PageRequest) -> list[examples.ExamplePerson]:
    """Return the demo's example people with their PINs; none outside development."""
    settings = request.context.services.settings
    return examples.load_example_people(settings.data_dir) if _is_development(request) else []


def _is_development(request: PageRequest) -> bool:
    return request.context.services.settings.environment == Environment.DEVELOPMENT


async def _find_signing_serials(
    request: PageRequest, people: Iterable[examples.ExamplePerson]
) -> set[str]:
    """Return the serials for cards that sign their taps."""
    rows = await request.context.services.database.fetch(
        "SELECT serial FROM cards WHERE serial = ANY($1) AND authenticity = $2",
        [person.card for person in people],
        CardAuthenticity.SUN,
    )
    return {row["serial"] for row in rows}


@pages.post("/simulator/pos/terminals")
async def create_terminal(request: PageRequest) -> Reply[bytes]:
    """Create a merchant with a terminal for testing, separate from existing merchants."""
    created = await request.send("POST", _PROCESSORS_PATH, _SIMULATOR_MERCHANT)
    await request.send("POST", _TERMINALS_PATH, {"name": "Till 1"}, id=created["processor_id"])
    return request.redirect("/simulator/pos", "Test terminal created for the merchant Simulator.")


@pages.post("/simulator/pos/keys")
async def create_key(request: PageRequest) -> Reply[bytes]:
    """Create a signing key; only this response contains its secret."""
    processor_id = request.form.get("processor_id") or "none"
    body = {"terminal_id": request.form.get("terminal_id")}
    created = await request.send("POST", _KEYS_PATH, body, id=processor_id)
    return request.render_json(created)


@pages.post("/simulator/pos/keys/delete")
async def delete_key(request: PageRequest) -> Reply[bytes]:
    """Delete a signing key. The page calls this when it no longer needs the key."""
    processor_id = request.form.get("processor_id") or "none"
    key_id = request.form.get("api_key_id") or "none"
    await request.send("DELETE", f"{_KEYS_PATH}/{{api_key_id}}", id=processor_id, api_key_id=key_id)
    return request.render_json({"deleted": True})


@pages.post("/simulator/pos/chip")
async def load_chip(request: PageRequest) -> Reply[bytes]:
    """Return a signing card's keys and counter, only in development."""
    await request.require_access("POST /api/v1/cards/{serial}/personalize")
    services, serial = request.context.services, request.form.get("serial") or ""
    keys = None
    if _is_development(request):
        keys = await load_chip_keys(services.database, services.vault, serial)
    if keys is None:
        raise ApiError(Code.NOT_FOUND)
    return request.render_json(
        {
            "uid": keys.uid.hex(),
            "meta_read_key": keys.meta_read_key.hex(),
            "file_read_key": keys.file_read_key.hex(),
            "counter": keys.counter,
        }
    )


@pages.get("/simulator/pos/cards")
async def search_cards(request: PageRequest) -> Reply[bytes]:
    """Search cards by serial, UID or cardholder; active cards come first.

    Without a search text, return only active cards.
    """
    search = request.query.get("search")
    if search is None:
        found = await request.get(
            "/api/v1/cards", {"status": CardStatus.ACTIVE, "limit": _MAX_CARDS}
        )
        return request.render_json(_to_records(found["data"]))
    by_serial, by_holder = await asyncio.gather(
        search_records(request, "/api/v1/cards", search, _MAX_CARDS),
        _search_cards_by_holder(request, search),
    )
    return request.render_json(_to_records([*by_serial, *by_holder]))


async def _search_cards_by_holder(request: PageRequest, name: str) -> list[dict[str, Any]]:
    people = await search_records(request, "/api/v1/subscribers", name, _MAX_PEOPLE)
    card_pages = await asyncio.gather(
        *(
            request.get("/api/v1/cards", {"subscriber_id": item["id"], "limit": _MAX_CARDS})
            for item in people
        )
    )
    return [card for page in card_pages for card in page["data"]]


def _to_records(cards: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    unique = {card["serial"]: card for card in cards}.values()
    selected = sorted(unique, key=lambda card: card["status"] != CardStatus.ACTIVE)[:_MAX_CARDS]
    fields = ("serial", "holder_name", "status", "type", "authenticity")
    return [{name: card[name] for name in fields} for card in selected]
