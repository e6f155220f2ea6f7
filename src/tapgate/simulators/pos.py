"""The POS terminal: which terminals and cards there are, and a key to sign with.

The terminal itself is a script in the browser. It signs and sends its requests as a real one does;
only what an administrator decides goes through these pages.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from tapgate import money
from tapgate.console.page_request import PageRequest, build_path
from tapgate.console.site import Pages
from tapgate.demo import examples
from tapgate.edge.endpoint import Reply
from tapgate.settings import DEVELOPMENT
from tapgate.simulators.searching import find

pages: Final = Pages()

_PROCESSORS: Final = "/api/v1/processors"
_TERMINALS: Final = "/api/v1/processors/{id}/terminals"
_KEYS: Final = "/api/v1/processors/{id}/keys"
_ONE_KEY: Final = "/api/v1/processors/{id}/keys/{api_key_id}"

#: The merchant of those who have none yet.
_OWN: Final = "Simulator"
_OWN_MERCHANT: Final = {
    "name": _OWN,
    "phone_number": "+23276000000",
    "email": "simulator@example.com",
}

_FEW: Final = 8
_FEW_PEOPLE: Final = 4


@pages.get("/simulator/pos")
async def terminal(visit: PageRequest) -> Reply[bytes]:
    await visit.require_access(
        f"POST {_KEYS}",
        sentence="The simulated terminal makes itself a signing key, which your role may not",
    )
    merchants = await _merchants(visit)
    settings = visit.context.services.settings
    return visit.render(
        "pos.html",
        merchants=[one for one in merchants if one["terminals"]],
        has_own=any(one["name"] == _OWN for one in merchants),
        decimals=money.get_decimals(settings.currency),
        example=_example(visit),
    )


async def _merchants(visit: PageRequest) -> list[dict[str, Any]]:
    """The newest processors with their terminals; those that work come first."""
    processors = (await visit.get(_PROCESSORS))["data"]
    lists = await asyncio.gather(
        *(visit.get(build_path(_TERMINALS, {"id": one["id"]})) for one in processors)
    )
    merchants = [
        {**one, "terminals": sorted(terminals["data"], key=_is_off)}
        for one, terminals in zip(processors, lists, strict=True)
    ]
    return sorted(merchants, key=_is_off)


def _is_off(record: dict[str, Any]) -> bool:
    return bool(record["status"] != "active")


def _example(visit: PageRequest) -> examples.Example | None:
    """The demo's own example, whose PIN was printed for everybody who started it."""
    settings = visit.context.services.settings
    if settings.environment != DEVELOPMENT:
        return None
    return examples.kept_person(settings.data_dir)


@pages.post("/simulator/pos/terminals")
async def make_terminal(visit: PageRequest) -> Reply[bytes]:
    """One to try things with, apart from the merchants that are there."""
    made = await visit.send("POST", _PROCESSORS, _OWN_MERCHANT)
    path = build_path(_TERMINALS, {"id": made["processor_id"]})
    await visit.send("POST", path, {"name": "Till 1"})
    return visit.redirect("/simulator/pos", f"The merchant {_OWN} has a terminal now.")


@pages.post("/simulator/pos/keys")
async def make_key(visit: PageRequest) -> Reply[bytes]:
    """The secret is in this answer and nowhere else."""
    path = build_path(_KEYS, {"id": visit.form.get("processor_id") or "none"})
    made = await visit.send("POST", path, {"terminal_id": visit.form.get("terminal_id")})
    return visit.render_json(made)


@pages.post("/simulator/pos/keys/delete")
async def delete_key(visit: PageRequest) -> Reply[bytes]:
    """When the terminal is switched off, so that no page leaves keys behind."""
    names = {
        "id": visit.form.get("processor_id") or "none",
        "api_key_id": visit.form.get("api_key_id") or "none",
    }
    await visit.send("DELETE", build_path(_ONE_KEY, names))
    return visit.render_json({"deleted": True})


@pages.get("/simulator/pos/cards")
async def find_cards(visit: PageRequest) -> Reply[bytes]:
    """By serial or UID, or by the name of whoever holds them; those that can pay come first."""
    search = visit.query.get("search")
    if search is None:
        found = await visit.get("/api/v1/cards", {"status": "ACTIVE", "limit": _FEW})
        return visit.render_json(_shown(found["data"]))
    lists = await asyncio.gather(
        find(visit, "/api/v1/cards", search, _FEW),
        _cards_of_people(visit, search),
    )
    return visit.render_json(_shown([*lists[0], *lists[1]]))


async def _cards_of_people(visit: PageRequest, name: str) -> list[dict[str, Any]]:
    people = await find(visit, "/api/v1/subscribers", name, _FEW_PEOPLE)
    lists = await asyncio.gather(
        *(visit.get("/api/v1/cards", {"subscriber_id": one["id"], "limit": _FEW}) for one in people)
    )
    return [card for found in lists for card in found["data"]]


def _shown(cards: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    unlike = {card["serial"]: card for card in cards}.values()
    chosen = sorted(unlike, key=lambda card: card["status"] != "ACTIVE")[:_FEW]
    names = ("serial", "holder_name", "status", "type")
    return [{name: card[name] for name in names} for card in chosen]
