"""Portal pages by role: what each shows, changes and hides."""

import gzip
import re
from datetime import timedelta

import pytest

from builders.approvals import build_rule, decide, require_held, set_rules
from builders.owner_world import OWNER_ROLES, V1, OwnerWorld
from builders.participants import FUND_URL, create_partner, get_partner_auth
from builders.payments import PosDriver
from builders.payouts import change_payout, create_merchant, request_payout
from cases import each
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness, parse_error
from tapgate.sites.portal.portal import PAGES
from tapgate_client import ids
from tapgate_client.errors import Code

#: Roles that reach a page. Every portal page is listed.
_LISTS = {
    "/portal": "MKPG",
    "/portal/account": "MKPG",
    "/portal/transactions": "MKPG",
    "/portal/transactions/export": "MKPG",
    "/portal/payouts": "MPG",
    "/portal/terminals": "MK",
    "/portal/disputes": "MK",
    "/portal/webhooks": "MP",
    "/portal/request-logs": "MP",
    "/portal/api": "MP",
    "/portal/approvals": "MKP",
    "/portal/team": "M",
    "/portal/statements": "MPG",
    "/portal/support": "MKPG",
}
#: Public pages and files, which visitors open too.
_PUBLIC = {
    "/portal/sign-in",
    "/portal/invitation",
    "/portal/texts/{file}",
    "/portal/brand.css",
    "/portal/logo.png",
}
_ITEMS = {
    "/portal/transactions/{id}": ("MKPG", ids.TRANSACTION),
    "/portal/payouts/{id}": ("MPG", ids.PAYOUT),
    "/portal/disputes/{id}": ("MK", ids.DISPUTE),
    "/portal/support/{id}": ("MKPG", ids.SUPPORT_REQUEST),
    "/portal/approvals/{id}": ("MKP", ids.APPROVAL),
    "/portal/webhooks/{id}": ("MP", ids.WEBHOOK_ENDPOINT),
    "/portal/request-logs/{id}": ("MP", ids.REQUEST_LOG),
}
_DELIVERY = "/portal/webhooks/{id}/deliveries/{delivery_id}"
_UNKNOWN = "0000000000000"
#: Pages that are tabs of another page, or outside the list of pages.
_UNLISTED = {
    "/portal/account",
    "/portal/transactions/export",
    "/portal/request-logs",
    "/portal/api",
}


@pytest.fixture
async def own(harness: Harness) -> OwnerWorld:
    world = OwnerWorld(harness, "zulu")
    await world.create()
    return world


async def open_portal(clients: ConsoleClients, world: OwnerWorld, role: str) -> ConsoleClient:
    client = clients.create_signed_out()
    client.site = client.referer = "/portal"
    owner_id = world.get_owner(OWNER_ROLES[role])
    client.set_session(await world.harness.create_owner_user(role, owner_id))
    return client


def test_every_page_is_listed_here() -> None:
    paths = {route.path for pages in PAGES for route in pages if route.method == "GET"}
    assert paths == {*_LISTS, *_ITEMS, *_PUBLIC, _DELIVERY}
    public = {route.path for pages in PAGES for route in pages if route.is_public}
    assert public == _PUBLIC | {"/portal/sign-in/passkey", "/portal/passkey-options"}


@each("role", list(OWNER_ROLES))
async def test_role_reaches_its_pages_and_navigation_shows_only_these(
    console_clients: ConsoleClients, own: OwnerWorld, role: str
) -> None:
    client = await open_portal(console_clients, own, role)
    statuses = {path: (await client.get(path)).status_code for path in _LISTS}
    assert statuses == {path: 200 if role in roles else 403 for path, roles in _LISTS.items()}
    navigation = re.findall(r'<li><a href="(/portal[/\w-]*)"', (await client.get("/portal")).text)
    assert set(navigation) == {path for path, roles in _LISTS.items() if role in roles} - _UNLISTED


async def test_every_page_highlights_one_entry_of_the_navigation(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    """The entry of the list, or the one whose tabs contain it. A manager opens all pages."""
    client = await open_portal(console_clients, own, "M")
    # A request for approval has a page only for its maker.
    client.set_session(next(caller.auth for caller in own.callers if caller.name == "user M"))
    (endpoint,) = [
        public_id
        for public_id in own.ids[ids.WEBHOOK_ENDPOINT]
        if (await client.get(f"/portal/webhooks/{public_id}")).status_code == 200
    ]
    found = {}
    for path in {*_LISTS, *_ITEMS, _DELIVERY} - {"/portal/transactions/export"}:
        for record in own.ids[_ITEMS[path][1]] if path in _ITEMS else own.ids[ids.DELIVERY]:
            url = path.replace("{id}", endpoint if path == _DELIVERY else record)
            response = await client.get(url.replace("{delivery_id}", record))
            if response.status_code == 200:
                break
        assert response.status_code == 200, path
        found[path] = re.findall(
            r'<a href="([^"]+)" aria-current="page"', response.text.partition("<main")[0]
        )
    tabs = {"/portal/request-logs": "/portal/webhooks", "/portal/api": "/portal/webhooks"}
    lists = {path: path.partition("/{")[0] for path in found}
    assert found == {path: [tabs.get(lists[path], lists[path])] for path in found}


async def test_pages_never_show_foreign_records_or_customers(
    harness: Harness, console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    foreign = OwnerWorld(harness, "quokka")
    await foreign.create()
    secrets = [*foreign.canaries, *own.personal_canaries]
    for role in OWNER_ROLES:
        client = await open_portal(console_clients, own, role)
        for path, (roles, prefix) in _ITEMS.items():
            if role not in roles:
                continue
            unknown = await client.get(path.format(id=prefix + _UNKNOWN))
            assert unknown.status_code == 404
            for public_id in foreign.ids[prefix]:
                response = await client.get(path.format(id=public_id))
                assert response.status_code == 404, (role, public_id)
                assert _get_body(response.text) == _get_body(unknown.text)
        pages = [path for path, roles in _LISTS.items() if role in roles]
        pages += [
            path.format(id=public_id)
            for path, (roles, prefix) in _ITEMS.items()
            if role in roles
            for public_id in own.ids[prefix]
        ]
        opened = 0
        for path in pages:
            response = await client.get(path)
            assert response.status_code in (200, 404), (role, path, response.text)
            opened += response.status_code == 200 and path not in _LISTS
            assert [text for text in secrets if text in response.text] == [], (role, path)
            # Owner users have no console: its address would lead them back to their home page.
            assert "/console" not in response.text.partition("<main")[2], (role, path)
        assert opened, role


def _get_body(page: str) -> str:
    """Return what a page shows, without the token of the session."""
    return page[page.index('<main id="main"') :]


async def test_cashier_sees_payments_but_no_balance_and_no_payouts(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    manager = await (await open_portal(console_clients, own, "M")).get_page_text("/portal")
    cashier = await (await open_portal(console_clients, own, "K")).get_page_text("/portal")
    for text in ("Sales today", "100.00 SLE", "3 payments"):
        assert text in manager and text in cashier, text
    for text in ("Balance", "Next payout"):
        assert text in manager and text not in cashier, text
    assert "10.00 SLE" in manager  # the requested payout


async def test_home_compares_sales_and_lists_what_waits(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    text = await client.get_page_text("/portal")
    dispute = own.ids[ids.DISPUTE][0]
    for expected in (
        "Sales by day",
        "last 14 days",
        "yesterday 0.00 SLE",
        "no earlier period",
        f'<a href="/portal/disputes/{dispute}"><strong>Answer a dispute',
        "/portal/actions/payout.create",
    ):
        assert expected in text, expected
    await client.submit_action("dispute.respond", {"text": "Delivered"}, id=dispute)
    assert "Answer a dispute" not in await client.get_page_text("/portal")
    cashier = await (await open_portal(console_clients, own, "K")).get_page_text("/portal")
    assert "Sales yesterday" in cashier and "Request payout" not in cashier
    # A cashier sees the payments of two days, so a week would be too low.
    assert "7 days" not in cashier
    partner = await (await open_portal(console_clients, own, "P")).get_page_text("/portal")
    assert "Top-ups by day" in partner and "last 7 days" in partner


async def test_payments_name_the_other_side(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    rows = (await client.get_page_text("/portal/transactions")).partition('id="rows"')[2]
    assert "Aminata" in rows and f"{own.mark}shop" not in rows


async def test_partner_sees_top_ups_apart_from_deposits(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    """The partner's deposit of 800.00 is not added to its top-up of 30.00."""
    client = await open_portal(console_clients, own, "P")
    figures = await _read_tiles(client)
    assert figures["Top-ups today"] == figures["Top-ups, last 7 days"] == "30.00 SLE"
    assert figures["Deposits, last 7 days"] == "800.00 SLE"
    assert {"Balance", "Next payout"} <= figures.keys()
    text = await client.get_page_text("/portal?")
    assert "Aminata" in text and "payout.create" in text
    listed = await client.get_page_text("/portal/transactions?period=week&flow=money_in")
    rows = listed.partition('id="rows"')[2]
    assert "−30.00 SLE" in rows and "800.00" not in rows


async def test_agent_sees_cash_ins_apart_from_cash_outs_and_requests_float(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client, agent = await open_portal(console_clients, own, "G"), own.get_owner(ids.AGENT)
    figures = await _read_tiles(client)
    assert figures["Cash-ins today"] == "20.00 SLE" and figures["Cash-outs today"] == "0.00 SLE"
    assert {"Float", "Commission"} <= figures.keys()
    assert "paid out this month: 0.00 SLE" in await client.get_page_text("/portal")
    requested = await client.submit_action("float_request.create", {"amount": "75"}, id=agent)
    assert "hx-redirect" in requested.headers, requested.text
    text = await client.get_page_text("/portal")
    assert "Float requested: 75.00 SLE" in text and "The platform decides" in text
    request_id = re.search(r"float_request\.cancel\?id=(frq_\w{13})", text)
    assert request_id is not None
    await client.submit_action("float_request.cancel", {}, id=request_id[1])
    assert "Float requested: 75.00 SLE" not in await client.get_page_text("/portal")
    manager = await open_portal(console_clients, own, "M")
    assert "float_request" not in await manager.get_page_text("/portal")


async def _read_tiles(client: ConsoleClient) -> dict[str, str]:
    """Return the figures at the top of the home page by label."""
    tiles = (await client.get_page_text("/portal")).partition('<dl class="tiles')[2]
    pairs = re.findall(r"<dt>([^<]+)</dt><dd><a [^>]+>([^<]+)</a>", tiles.partition("</dl>")[0])
    return {label: amount.replace("\xa0", " ") for label, amount in pairs}


async def test_declined_outgoing_payment_has_a_sign_too(
    harness: Harness, console_clients: ConsoleClients
) -> None:
    customer = await harness.create_subscriber()
    created = await create_partner(harness, balance="10")
    partner = created["partner"]["id"]
    body = {"partner_id": partner, "subscriber_id": customer["id"], "partner_reference": "R-1"}
    funded = await harness.post(
        FUND_URL, json={**body, "amount": "30"}, auth=get_partner_auth(created)
    )
    assert parse_error(funded) == (402, Code.INSUFFICIENT_FUNDS)
    client = console_clients.create_signed_out()
    client.set_session(await harness.create_owner_user("P", partner))
    rows = (await client.get_page_text("/portal/transactions?status=failed")).partition("rows")[2]
    assert "−30.00 SLE" in rows


async def test_payments_are_filtered_and_exported(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    text = await client.get_page_text("/portal/transactions?period=today&status=completed")
    assert "25.00 SLE" in text and "35.00 SLE" in text
    assert "No payments match" in await client.get_page_text("/portal/transactions?status=failed")
    file = await client.get("/portal/transactions/export?period=today")
    assert file.headers["content-type"].startswith("text/csv")
    assert "25.00" in file.text and own.personal_canaries[0] not in file.text


@each(
    "role, figures",
    [
        ("M", {"Payments": "100.00 SLE", "Refunds": "0.00 SLE", "Bank payouts": "10.00 SLE"}),
        ("K", {"Payments": "100.00 SLE", "Refunds": "0.00 SLE", "Bank payouts": "10.00 SLE"}),
        ("P", {"Top-ups": "30.00 SLE", "Deposits": "800.00 SLE", "Bank payouts": "10.00 SLE"}),
        ("G", {"Cash-ins": "20.00 SLE", "Cash-outs": "0.00 SLE"}),
    ],
)
async def test_payments_are_added_up_by_direction(
    console_clients: ConsoleClients, own: OwnerWorld, role: str, figures: dict[str, str]
) -> None:
    client = await open_portal(console_clients, own, role)
    found = _read_sums(await client.get_page_text("/portal/transactions"))
    assert {label: found.get(label) for label in figures} == figures
    for query in ("period=dates&from=2020-01-01&to=2020-01-31", "from=2020-01-01&to=2020-01-31"):
        text = await client.get_page_text(f"/portal/transactions?{query}")
        assert set(_read_sums(text).values()) == {"0.00 SLE"}, query
        assert 'value="dates" selected' in text, query
    one = _read_sums(await client.get_page_text("/portal/transactions?type=payout"))
    assert list(one) == ["Selected payments"]
    wrong = await client.get_page_text("/portal/transactions?from=soon&type=payout")
    assert "This filter was ignored" in wrong


async def test_payouts_are_added_up_without_those_that_came_back(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    shop = await create_merchant(harness)
    _, canceled = [await request_payout(harness, shop, amount=amount) for amount in ("40", "25")]
    assert (await change_payout(harness, canceled["id"], "cancel")).status_code == 200
    client = console_clients.create_signed_out()
    client.set_session(await harness.create_owner_user("M", shop))
    found = _read_sums(await client.get_page_text("/portal/transactions"))
    assert found["Bank payouts"] == "40.00 SLE"


def _read_sums(text: str) -> dict[str, str]:
    """Return the totals above the payments by label."""
    tiles = text.partition('id="totals"')[2].partition("</dl>")[0]
    pairs = re.findall(r"<dt>([^<]+) <span[^>]+>[^<]+</span></dt><dd>([^<]+)<small>", tiles)
    return {label: amount.replace("\xa0", " ") for label, amount in pairs}


async def test_next_page_of_a_list_is_a_plain_link(
    harness: Harness, console_clients: ConsoleClients
) -> None:
    pos = await PosDriver.create(harness)
    terminals = {await pos.create_terminal() for _ in range(51)}
    shop = await harness.get_processor_id(pos.merchant_auth)
    client = console_clients.create_signed_out()
    client.set_session(await harness.create_owner_user("M", shop))
    first = await client.get_page_text("/portal/terminals")
    link = re.search(r'<noscript><a href="([^"]+)">Next page', first)
    assert link is not None
    second = await client.get_page_text(link[1])
    pages = [set(re.findall(r"<code>(ter_\w{13})", text)) for text in (first, second)]
    assert [len(page) for page in pages] == [50, 1] and pages[0] | pages[1] == terminals


async def test_receipt_is_refunded_with_a_reason(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    path = f"/portal/transactions/{own.ids[ids.TRANSACTION][1]}"
    text = await client.get_page_text(path)
    shared = re.search(r'data-share="([^"]+)"', text)
    assert shared is not None and "25.00 SLE" in shared[1]
    assert own.ids[ids.TRANSACTION][1] in shared[1]
    for expected in ("data-print", "Copy link", "transaction.refund", "25.00 SLE"):
        assert expected in text, expected
    refund = {"id": own.ids[ids.TRANSACTION][1]}
    missing = await client.submit_action("transaction.refund", {"amount": "5"}, **refund)
    assert "Fix the highlighted fields" in missing.text
    done = await client.submit_action(
        "transaction.refund", {"amount": "5", "reason": "returned"}, **refund
    )
    assert done.headers["hx-redirect"] == path, done.text
    text = await client.get_page_text(path)
    assert "−5.00 SLE" in text and "20.00 SLE" in text


async def test_partner_has_no_refund(console_clients: ConsoleClients, own: OwnerWorld) -> None:
    client = await open_portal(console_clients, own, "P")
    form = await client.get_partial("/portal/actions/transaction.refund?id=txn_0000000000000")
    assert form.status_code == 403


async def test_manager_requests_a_payout_and_adds_a_bank_account(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client, shop = await open_portal(console_clients, own, "M"), own.get_owner(ids.PROCESSOR)
    await client.get_page_text("/portal/payouts")
    requested = await client.submit_action("payout.create", {"amount": "12.50", "owner_id": shop})
    assert "hx-redirect" in requested.headers, requested.text
    location = requested.headers["hx-redirect"]
    assert re.fullmatch(r"/portal/payouts/po_\w{13}", location), requested.text
    assert "12.50 SLE" in await client.get_page_text(location)
    account = {"holder_name": "Kamara Stores", "bank_code": "RCBK", "number": "001234567"}
    account["owner_id"] = shop
    added = await client.submit_action("bank_account.create", account)
    assert added.status_code == 200, added.text
    text = await client.get_page_text("/portal/payouts")
    assert "Kamara Stores" in text and "••••4567" in text
    schedule = {"interval": "weekly", "minimum": "50", "reserve_percent": "10"}
    await client.submit_action("payout_schedule.update", schedule, id=shop)
    assert "Weekly" in await client.get_page_text("/portal/payouts")


async def test_payout_shows_its_stages_and_a_masked_account_number(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    harness, payout = own.harness, own.ids[ids.PAYOUT][0]
    client = await open_portal(console_clients, own, "M")
    admin = await harness.create_admin()
    record = (await harness.get(f"{V1}/payouts/{payout}", auth=admin)).json()
    account = f"{V1}/bank-accounts/{record['bank_account_id']}"
    number = (await harness.get(account, auth=admin)).json()["number"]
    text = await client.get_page_text(f"/portal/payouts/{payout}")
    assert f"••••{number[-4:]}" in text and number not in text
    assert '<li class="current" aria-current="step">' in text
    assert "payout.cancel" not in text, "owners can't cancel payouts"
    assert "The next payout run sends it to your bank." in text


async def test_approval_shows_the_request_but_not_who_decides(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client, harness = await open_portal(console_clients, own, "M"), own.harness
    manager = next(caller.auth for caller in own.callers if caller.name == "user M")
    client.set_session(manager)
    await set_rules(harness, build_rule("merchant_keys"))
    address = f"{V1}/processors/{own.get_owner(ids.PROCESSOR)}/terminals"
    approval = require_held(await harness.post(address, json={"name": "Till 9"}, auth=manager))
    path = f"/portal/approvals/{approval['id']}"
    text = await client.get_page_text(path)
    assert "Till 9" in text and "Waits for approval by the platform" in text
    assert "approval.cancel" not in text, "owners can't cancel requests"
    staff = await harness.create_admin("F")
    rejected = await decide(harness, approval, "reject", staff, reason="Call us first")
    assert rejected.status_code == 200, rejected.text
    text = await client.get_page_text(path)
    assert "Rejected by the platform" in text and '<li class="failed">' in text
    for decision in rejected.json()["decisions"]:
        assert decision["admin_name"] not in text and decision["admin_id"] not in text


async def test_manager_adds_and_blocks_a_terminal(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client, shop = await open_portal(console_clients, own, "M"), own.get_owner(ids.PROCESSOR)
    added = await client.submit_action("terminal.add", {"name": "Till 7"}, id=shop)
    match = re.search(r"ter_\w{13}", added.text)
    assert match is not None and 'href="/portal/terminals"' in added.text
    await client.submit_action("terminal.block", {}, id=shop, terminal_id=match[0])
    text = await client.get_page_text("/portal/terminals")
    assert "Till 7" in text and "Blocked" in text
    await client.submit_action("terminal.unblock", {}, id=shop, terminal_id=match[0])
    assert "Blocked" not in await client.get_page_text("/portal/terminals")
    cashier = await open_portal(console_clients, own, "K")
    text = await cashier.get_page_text("/portal/terminals")
    assert "Till 7" in text and "/portal/actions/" not in text


async def test_first_page_is_small_for_phones(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    """Compressed page, styles, scripts and icons. Phones do not load the font."""
    client = await open_portal(console_clients, own, "M")
    page = (await client.get("/portal")).text
    assert re.search(r'as="font"[^>]* media="\(min-width', page)
    assets = set(re.findall(r'(?:href|src)="(/portal/assets/[\w.-]+)', page))
    assets = {path for path in assets if not path.endswith(".woff2")}
    assert {"/portal/assets/icons.svg", "/portal/assets/portal.css"} <= assets
    contents = [page, *[(await client.get(path)).text for path in sorted(assets)]]
    assert sum(len(gzip.compress(content.encode())) for content in contents) < 100 * 1024


async def test_terminals_show_sales_by_day_whose_nets_add_up(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    text = await client.get_page_text("/portal/terminals?period=today")
    sales = text[text.index('id="sales"') :]
    # Sales of 100.00 minus fees of 1.00. The payout of 10.00 does not count.
    assert "Without a terminal" in sales and sales.count("99.00 SLE") == 2
    unknown = await client.get_page_text("/portal/terminals?period=decade")
    assert 'period=week" aria-current="page"' in unknown
    cashier = await open_portal(console_clients, own, "K")
    assert "Without a terminal" not in await cashier.get_page_text("/portal/terminals")


@each("action, status", [("dispute.respond", "Answered"), ("dispute.accept", "Refunded")])
async def test_cashier_answers_a_dispute(
    console_clients: ConsoleClients, own: OwnerWorld, action: str, status: str
) -> None:
    client, dispute = await open_portal(console_clients, own, "K"), own.ids[ids.DISPUTE][0]
    path = f"/portal/disputes/{dispute}"
    assert "zuludispute" in await client.get_page_text(path)
    fields = {"text": "Delivered on time", **({"accept": "yes"} if "accept" in action else {})}
    done = await client.submit_action(action, fields, id=dispute)
    assert done.headers["hx-redirect"] == path, done.text
    text = await client.get_page_text(path)
    assert "Delivered on time" in text and status in text


async def test_dispute_and_payment_lead_to_each_other(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "K")
    path = f"/portal/disputes/{own.ids[ids.DISPUTE][0]}"
    page = await client.get_page_text(path)
    assert "Without an answer, the platform decides" in page and "Aminata" in page
    payment = re.search(r"/portal/transactions/txn_\w{13}", page)
    assert payment is not None
    contested = await client.get_page_text(payment[0])
    assert "Contested by the customer" in contested and f'href="{path}"' in contested
    other = await client.get_page_text(f"/portal/transactions/{own.ids[ids.TRANSACTION][1]}")
    assert "Contested" not in other
    # Cashiers see payments of today and yesterday, and disputes of any day.
    own.harness.advance_clock(days=3)
    client = await open_portal(console_clients, own, "K")
    page = await client.get_page_text(path)
    assert "zuludispute" in page and payment[0] not in page and "Aminata" not in page


async def test_disputes_show_the_payment_and_the_days_left(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    row = (await client.get_page_text("/portal/disputes")).partition('id="rows"')[2]
    payment = own.ids[ids.TRANSACTION][0]
    for expected in ("Needs an answer", "Aminata", f"/portal/transactions/{payment}", "In 7 days"):
        assert expected in row, expected
    await client.submit_action("dispute.respond", {"text": "Sent"}, id=own.ids[ids.DISPUTE][0])
    row = (await client.get_page_text("/portal/disputes")).partition('id="rows"')[2]
    assert "Answered" in row and "dispute.respond" not in row and "In 7 days" not in row


async def test_approvals_say_what_is_asked_for_without_the_own_name(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    # A request for approval has a page only for its maker.
    client.set_session(next(caller.auth for caller in own.callers if caller.name == "user M"))
    rows = (await client.get_page_text("/portal/approvals")).partition('id="rows"')[2]
    assert f"to merchant {own.mark}" not in rows and "Pending" in rows
    assert re.search(r'data-label="Expires"[^>]*><span title="[^"]+">In ', rows), rows


async def test_developers_create_keys_and_webhooks(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    for role, prefix, action in (
        ("M", ids.PROCESSOR, "processor.key"),
        ("P", ids.PARTNER, "partner.key"),
    ):
        client = await open_portal(console_clients, own, role)
        text = await client.get_page_text("/portal/webhooks")
        assert "https://zulu.example/" in text and "/portal/api" in text
        created = await client.submit_action(action, {}, id=own.get_owner(prefix))
        match = re.search(r"key_\w{13}", created.text)
        assert match is not None, created.text
        assert match[0] in await client.get_page_text("/portal/webhooks")
        fields = {"url": f"https://{role.lower()}.example/", "events": ["transaction.completed"]}
        created = await client.submit_action("webhook.create", fields)
        match = re.search(r"/portal/webhooks/whk_\w{13}", created.text)
        assert match is not None, created.text
        assert "Deliveries" in await client.get_page_text(match[0])


async def test_manager_invites_disables_and_enables_a_cashier(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    user = {
        "name": "Fatu",
        "email": "fatu@example.com",
        "role": "merchant_cashier",
        "owner_id": own.get_owner(ids.PROCESSOR),
    }
    invited = await client.submit_action("team.create", user)
    assert "/portal/invitation#" in invited.text, invited.text
    text = await client.get_page_text("/portal/team")
    assert "fatu@example.com" in text and "Cashier" in text and "No second factor" in text
    (fatu,) = [
        row["id"]
        for row in await own.harness.database.fetch(
            "SELECT id FROM admins WHERE email = 'fatu@example.com'"
        )
    ]
    public_id = ids.encode(ids.ADMIN, fatu)
    await client.submit_action("team.disable", {}, id=public_id)
    assert "Disabled" in await client.get_page_text("/portal/team")
    await client.submit_action("team.enable", {}, id=public_id)
    assert "Disabled" not in await client.get_page_text("/portal/team")
    await client.submit_action("team.disable", {}, id=public_id)
    staff = await console_clients.create_signed_in()
    page = await staff.get_page_text(f"/console/administrators/{public_id}")
    assert "Disabled by the owner" in page
    await staff.submit_action("administrator.disable", {}, id=public_id)
    page = await staff.get_page_text(f"/console/administrators/{public_id}")
    assert "administrator.enable" in page and "administrator.disable" not in page
    team = await client.get_page_text("/portal/team")
    assert "by the platform" in team and "team.enable" not in team


async def test_statement_is_downloaded_without_scripts(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    for role in "MPG":
        client = await open_portal(console_clients, own, role)
        form = {"from": "2026-01-01", "to": "2026-01-31", "format": "csv"}
        response = await client.post_form("/portal/statements", form)
        assert response.status_code == 303, response.text
        file = await client.get(response.headers["location"])
        assert "opening_balance" in file.text
        wrong = await client.post_form("/portal/statements", {**form, "to": "2025-01-01"})
        assert wrong.status_code == 422 and "Fix the highlighted fields" in wrong.text
    cashier = await open_portal(console_clients, own, "K")
    assert (await cashier.post_form("/portal/statements", form)).status_code == 403


async def test_statements_offer_months_and_presets(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    text = await client.get_page_text("/portal/statements?period=last_month")
    today = own.harness.services.clock().date()
    last = today.replace(day=1) - timedelta(days=1)
    for name, day in (("from", last.replace(day=1)), ("to", last)):
        assert f'name="{name}" type="date" required value="{day}"' in text
    # The account is new: its only month is the current one.
    months = re.findall(r'name="(from|to)" value="([\d-]+)"', text)
    assert months == [("from", f"{today.replace(day=1)}"), ("to", f"{today}")]
    unknown = await client.get_page_text("/portal/statements?period=decade")
    assert 'period=this_month" aria-current="true"' in unknown


async def test_request_log_has_rare_filters_behind_a_button(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    text = await client.get_page_text("/portal/request-logs")
    rare = text[text.index("More filters") : text.index("</details>", text.index("More filters"))]
    names = re.findall(r'name="(\w+)"', rare)
    assert names == ["status", "error_code", "request_id", "idempotency_key"]
    filtered = await client.get_page_text("/portal/request-logs?error_code=INVALID_PIN")
    assert 'class="more-filters" open' in filtered and "No requests match" in filtered


async def test_forms_are_pages_without_scripts(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    payment = own.ids[ids.TRANSACTION][1]
    path = f"/portal/transactions/{payment}"
    text = await client.get_page_text(path)
    form = '<form class="no-script" action="/portal/actions/transaction.refund">'
    assert form in text and f'<input type="hidden" name="id" value="{payment}">' in text
    address = f"/portal/actions/transaction.refund?id={payment}"
    page = (await client.get(address, Referer=client.origin + path)).text
    assert '<main id="main"' in page and f'href="{path}">Cancel' in page
    hidden = {
        name: re.search(rf'name="{name}" value="([^"]+)"', page)
        for name in ("previous", "request_id")
    }
    fields = {name: match[1] for name, match in hidden.items() if match is not None}
    assert fields["previous"] == path
    wrong = await client.post_form(address, {**fields, "amount": "5"})
    assert '<main id="main"' in wrong.text and "Fix the highlighted fields" in wrong.text
    assert f'name="previous" value="{path}"' in wrong.text
    done = await client.post_form(address, {**fields, "amount": "5", "reason": "returned"})
    assert (done.status_code, done.headers["location"]) == (303, path), done.text
    assert "−5.00 SLE" in await client.get_page_text(path)


async def test_secrets_are_shown_without_scripts(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    address = f"/portal/actions/terminal.add?id={own.get_owner(ids.PROCESSOR)}"
    added = await client.post_form(address, {"name": "Till 9"})
    assert '<main id="main"' in added.text and re.search(r"key_\w{13}", added.text), added.text
    assert 'href="/portal/terminals"' in added.text
    assert added.headers["Cache-Control"] == "no-store"
    elsewhere = {"name": "Till 10", "previous": "https://evil.example/"}
    refused = await client.post_form(address, {**elsewhere, "name": ""})
    assert 'name="previous" value="/"' in refused.text or 'value="/portal"' in refused.text


async def test_api_reference_has_only_operations_of_the_owner(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    merchant = await (await open_portal(console_clients, own, "M")).get_page_text("/portal/api")
    partner = await (await open_portal(console_clients, own, "P")).get_page_text("/portal/api")
    for expected in ("/pos/payment", "/payout-schedule", "/statements"):
        assert expected in merchant.replace("<wbr>", ""), expected
    assert "/guide/api/pos#" in merchant and "/guide/api/pos#" not in partner
    index = re.findall(r'<ul id="(resource-[\w-]+)">', merchant)
    assert index[:3] == ["resource-pos", "resource-in-app-payments", "resource-transactions"]
    assert len(index) > 10 and index[-1] in ("resource-account", "resource-day-close")
    assert "/statements" in partner.replace("<wbr>", "")
    for foreign in ("/subscribers/", "/approval-rules", "/compliance/", "/ledger/"):
        for text in (merchant, partner):
            assert f"/api/v1{foreign}" not in text.replace("<wbr>", ""), foreign


async def test_api_reference_is_searched(console_clients: ConsoleClients, own: OwnerWorld) -> None:
    client = await open_portal(console_clients, own, "M")
    found = await client.get_page_text("/portal/api?search=Refund+POS")
    assert re.findall(r'<ul id="(resource-[\w-]+)">', found) == ["resource-pos"]
    part = await client.get_partial("/portal/api?search=payouts")
    assert "resource-payouts" in part.text and "<main" not in part.text
    nothing = (await client.get("/portal/api?search=%3Cquokka%3E")).text
    assert "No operations match" in nothing and "<quokka>" not in nothing


@each(
    "contact, link",
    [
        ("+232 76 123 456", "tel:+23276123456"),
        ("help@pay.example", "mailto:help@pay.example"),
        ("https://pay.example/help", "https://pay.example/help"),
    ],
)
async def test_support_page_shows_the_contact_of_the_branding(
    console_clients: ConsoleClients, own: OwnerWorld, contact: str, link: str
) -> None:
    changed = await own.harness.put(
        "/api/v1/admin/branding",
        json={"support_contact": contact},
        auth=await own.harness.create_admin(),
    )
    assert changed.status_code == 200, changed.text
    client = await open_portal(console_clients, own, "K")
    assert f'href="{link}"' in await client.get_page_text("/portal/support")


async def test_question_about_a_payment_is_answered_in_the_portal(
    console_clients: ConsoleClients, own: OwnerWorld
) -> None:
    client = await open_portal(console_clients, own, "M")
    payment = own.ids[ids.TRANSACTION][1]
    page = await client.get_page_text(f"/portal/transactions/{payment}")
    assert f"/portal/actions/support.ask?about={payment}" in page
    form = {"text": "Where is the fee from?", "about": payment}
    asked = await client.submit_action("support.ask", form, about=payment)
    path = asked.headers["HX-Redirect"].partition("?")[0]
    assert path.startswith("/portal/support/req_")
    text = await client.get_page_text(path)
    assert "Where is the fee from?" in text and f"/portal/transactions/{payment}" in text
    request_id = path.rpartition("/")[2]
    staff = console_clients.create_signed_out()
    staff.set_session(await own.harness.create_admin("S"))
    case = await staff.get_page_text(f"/console/support/{request_id}")
    assert f"{own.mark}shop" in case and f"/console/transactions/{payment}" in case
    assert "Shown in the portal." in case
    replied = await staff.submit_action(
        "support.reply", {"text": "It is your plan's fee."}, id=request_id
    )
    assert replied.status_code in (200, 204), replied.text
    assert "It is your plan" in await client.get_page_text(path)
    assert "It is your plan" in await client.get_page_text("/portal/support")
    page = await client.get_page_text(path)
    assert f"<h1>{form['text']}" in page and "reply below" in page
    form_text = page[page.index('<form class="reply"') :]
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]+)"', form_text))
    address = f"/portal/actions/support.write?id={request_id}"
    sent = await client.post_partial(address, {**hidden, "text": "Which plan?"})
    assert sent.headers["hx-redirect"] == path, sent.text
    sent = await client.post_without_csrf(address, {**hidden, "text": "The basic one?"})
    assert (sent.status_code, sent.headers["location"]) == (303, path), sent.text
    page = await client.get_page_text(path)
    assert "Which plan?" in page and "The basic one?" in page and "Waits for support" in page
    await staff.submit_action("support.close", id=request_id)
    page = await client.get_page_text(path)
    assert '<form class="reply"' not in page and "support.ask" in page
