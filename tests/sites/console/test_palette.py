"""Command palette: pages, actions, recent records, and actions on records."""

from builders.payments import PosDriver
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate.server.gateway import list_endpoints
from tapgate.sites.console.components import palette
from tapgate.sites.console.console import ACTIONS, PAGES

URL = "/console/search"


def test_every_command_leads_to_a_page_and_an_action_that_exist() -> None:
    paths = {page.path for pages in PAGES for page in pages}
    actions = {action.name: action.endpoint for action in ACTIONS}
    endpoints = {endpoint.name for endpoint in list_endpoints()}
    commands = (*palette.PAGES, *palette.ACTIONS, *palette.RECORD_ACTIONS)
    assert {command.endpoint for command in commands} <= endpoints
    assert {command.path for command in commands if command.path} <= paths
    for command in (*palette.ACTIONS, *palette.RECORD_ACTIONS):
        assert actions[command.action] == command.endpoint


async def test_empty_palette_shows_recent_records_actions_and_pages(
    ada: ConsoleClient, harness: Harness
) -> None:
    customer = await harness.create_subscriber()
    text = (await ada.get_partial(f"{URL}?recent={customer['id']}")).text
    assert f'href="/console/subscribers/{customer["id"]}"' in text
    assert 'href="/console/subscribers#do=subscriber.register"' in text
    assert 'href="/console/cards"' in text


async def test_search_page_loads_recent_records(ada: ConsoleClient, harness: Harness) -> None:
    customer = await harness.create_subscriber()
    assert 'hx-get="/console/search/recent"' in await ada.get_page_text(URL)
    text = (await ada.get_partial(f"{URL}/recent?recent={customer['id']},sub_unknown")).text
    assert text.count("<li>") == 1
    assert f'href="/console/subscribers/{customer["id"]}"' in text
    assert "<h2" not in (await ada.get_partial(f"{URL}/recent")).text


async def test_palette_finds_pages_and_actions_by_words_and_role(
    ada: ConsoleClient, console_clients: ConsoleClients
) -> None:
    text = (await ada.get_partial(f"{URL}?q=invite+admin")).text
    assert 'href="/console/administrators#do=administrator.create"' in text
    compliance = await console_clients.create_signed_in("C")
    text = (await compliance.get_partial(f"{URL}?q=invite+admin")).text
    assert "administrator.create" not in text and "No matches" in text


async def test_palette_acts_on_a_record_named_after_the_action(
    ada: ConsoleClient, harness: Harness
) -> None:
    pos = await PosDriver.create(harness)
    paid = (await pos.pay("16.50")).json()["transaction_id"]
    text = (await ada.get_partial(f"{URL}?q=block+card")).text
    assert 'data-fill="Block card "' in text
    text = (await ada.get_partial(f"{URL}?q=block+card+{pos.card}")).text
    assert f'href="/console/cards/{pos.card}#do=card.block"' in text
    text = (await ada.get_partial(f"{URL}?q=refund+16.50")).text
    assert f'href="/console/transactions/{paid}#do=transaction.refund"' in text
    text = (await ada.get_partial(f"{URL}?q=16.50")).text
    assert f'href="/console/transactions/{paid}"' in text
