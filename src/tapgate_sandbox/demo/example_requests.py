"""Example API requests for the demo, printed after the build."""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from shlex import quote
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from tapgate.core.settings import Settings
from tapgate_client import money
from tapgate_sandbox.demo import seed
from tapgate_sandbox.demo.people import Country, Resident

_DEFAULT_DATA_DIR: Final = Path(".tapgate")


class ExampleContext(NamedTuple):
    """Example request parameters; the commands are quoted for a shell."""

    url: str
    api_key: str
    sign: str
    verify: str
    tap: str
    currency: str


def build_context(settings: Settings, api_key: str, command: str) -> ExampleContext:
    tapgate = quote(command)
    environment = list(_list_environment(settings))
    verify = " ".join([*environment, tapgate, "verify"])
    public_url = f"TAPGATE_PUBLIC_URL={quote(settings.local_url)}"
    tap = " ".join([*environment, public_url, tapgate, "card tap"])
    return ExampleContext(
        settings.local_url, api_key, f"{tapgate} sign", verify, tap, settings.currency
    )


def _list_environment(settings: Settings) -> Iterator[str]:
    """Yield the variables with which a command in another shell finds the same database.

    A database URL with a password is left out.
    """
    if settings.data_dir != _DEFAULT_DATA_DIR:
        yield f"TAPGATE_DATA_DIR={quote(str(settings.data_dir.absolute()))}"
    url = settings.database_url
    if url is not None and urlsplit(url).password is None:
        yield f"TAPGATE_DATABASE_URL={quote(url)}"


def render_examples(country: Country, context: ExampleContext, *, today: date) -> list[str]:
    """Return the examples; each request is one self-contained line that can be repeated."""
    counts = (
        f"{len(country.residents):,} customers, {len(country.shops)} merchants and "
        f"{len(country.agents)} agents"
    )
    heading = f"The demo has {counts}. Try these requests in another terminal, in this folder:"
    return [heading, *(f"  {line}" for line in _render_commands(country, context, today))]


def _render_commands(country: Country, context: ExampleContext, today: date) -> Iterator[str]:
    hero, friend = (country.residents[number] for number in (seed.HERO, seed.FRIEND))
    yield _describe_resident(hero)
    for number in (0, len(country.super_agents)):
        counter, mobile = country.agents[number], seed.get_agent_phone_number(number)
        yield f"# Agent {counter.business_name or counter.name}: phone {mobile}, PIN {counter.pin}"
    yield from _render_account_requests(hero, context, today)
    yield from _render_money_requests(country, hero, friend, context)
    yield "# The page that a phone opens when it reads a card that signs its taps"
    yield _describe_resident(friend)
    yield f"curl -s $({context.tap} {friend.serial})"
    yield "# Verify the ledger"
    yield context.verify


def _describe_resident(resident: Resident) -> str:
    phone = seed.get_phone_number(resident)
    name = resident.person.name
    return f"# {name}: phone {phone}, card {resident.serial}, PIN {resident.pin}"


def _render_account_requests(hero: Resident, context: ExampleContext, today: date) -> Iterator[str]:
    yield _render_get(context, f"/api/v1/subscribers/{hero.public_id}")
    yield _render_get(context, f"/api/v1/balance/{hero.public_id}")
    yield _render_get(context, f"/api/v1/transactions?user_id={hero.public_id}&limit=5")
    statement = {
        "subscriber_id": hero.public_id,
        "from_date": (today - timedelta(days=30)).isoformat(),
        "to_date": today.isoformat(),
        "format": "pdf",
    }
    yield _render_post(context, "/api/v1/wallet/account-statement", statement)


def _render_money_requests(
    country: Country, hero: Resident, friend: Resident, context: ExampleContext
) -> Iterator[str]:
    agent, shop = country.agents[0], country.shops[0]
    name = hero.person.first_name
    yield f"# {name} sends money to {friend.person.first_name}"
    p2p = {
        "request_id": "try-p2p-1",
        "sender_id": hero.public_id,
        "recipient_card_serial": friend.serial,
        "amount": _format_amount(context, 50),
        "pin": hero.pin,
        "memo": "thank you",
    }
    yield _render_post(context, "/api/v1/wallet/transfer-p2p", p2p)
    yield f"# {name} deposits cash at {agent.business_name or agent.name}"
    cash_in = {
        "request_id": "try-cash-in-1",
        "agent_id": agent.public_id,
        "card_serial": hero.serial,
        "amount": _format_amount(context, 200),
        "agent_pin": agent.pin,
    }
    yield _render_post(context, "/api/v1/agents/cashin", cash_in)
    yield f"# A terminal at {shop.merchant.name} looks up the card, then takes a payment"
    payment = {
        "request_id": "try-pos-1",
        "card_serial": hero.serial,
        "amount": _format_amount(context, 35),
        "pin": hero.pin,
    }
    terminal = shop.terminals[0]
    for path, body in (
        ("/api/v1/pos/lookup-card", {"card_identifier": hero.serial}),
        ("/api/v1/pos/payment", payment),
    ):
        yield _render_signed_post(
            context, path, body, key_id=terminal.key_id, secret=terminal.key.secret
        )


def _format_amount(context: ExampleContext, major: int) -> str:
    return money.format_decimal(
        major * 10 ** money.get_decimals(context.currency), context.currency
    )


def _render_get(context: ExampleContext, path: str) -> str:
    return f"curl -s {quote(context.url + path)} {_render_authorization(context)}"


def _render_post(context: ExampleContext, path: str, body: Mapping[str, str]) -> str:
    authorization = _render_authorization(context)
    return f"curl -s {quote(context.url + path)} {authorization} -d {_quote_json(body)}"


def _render_signed_post(
    context: ExampleContext, path: str, body: Mapping[str, str], *, key_id: str, secret: str
) -> str:
    # With a space instead of `=`, a secret that starts with a dash would be parsed as an option.
    sign = (
        f"{context.sign} pos POST {path} -d {_quote_json(body)} --key-id {key_id} "
        f"--secret={quote(secret)}"
    )
    return f"curl -s {quote(context.url + path)} -d {_quote_json(body)} $({sign})"


def _render_authorization(context: ExampleContext) -> str:
    return f"-H 'Authorization: Bearer {context.api_key}'"


def _quote_json(body: Mapping[str, str]) -> str:
    return quote(msgspec.json.encode(body).decode())
