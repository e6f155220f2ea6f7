"""Card pages: block reasons, status changes, restricted subscribers, uploads and signed taps."""

import re
from urllib.parse import unquote_to_bytes

import pytest

from builders.approvals import approve, build_rule, set_rules
from builders.card_proofs import (
    create_keyset,
    create_signing_pos,
    list_clone_alerts,
    tap,
)
from builders.participants import (
    CHILD_PIN,
    create_card,
    create_child_card,
    link_card,
    link_child_card,
)
from cases import each
from drivers.console import ConsoleClient, ConsoleClients, contains_digits
from drivers.csv_files import read_rows
from harness import Harness
from tapgate.business.customers.cards.model import BLOCK_REASON_TEXTS
from tapgate.sites.console.components.tap_chart import build_tap_marks
from tapgate.sites.console.pages.cards import ACTIONS
from tapgate_client import ids
from tapgate_sandbox.software_card import SoftwareCard

XSS_PAYLOAD = "<script>alert(1)</script>"


def test_every_block_reason_is_offered_and_permanent_ones_are_labeled() -> None:
    actions = {action.name: action for action in ACTIONS}
    (block_reasons,) = actions["card.block"].fields
    (permanent_reasons,) = actions["card.lose"].fields
    assert {value for value, _ in block_reasons.options} == set(BLOCK_REASON_TEXTS["en"])
    assert {value for value, _ in permanent_reasons.options} == {"lost", "stolen", "damaged"}
    labeled = {value for value, label in block_reasons.options if label.endswith("(permanent)")}
    assert labeled == {"lost", "stolen", "damaged"}


async def test_card_can_be_blocked_unblocked_and_blocked_permanently(
    ada: ConsoleClient, harness: Harness
) -> None:
    holder = await harness.create_subscriber()
    serial = await harness.create_card(holder["id"])
    page = f"/console/cards/{serial}"
    text = await ada.get_page_text(page)
    assert f'href="/console/subscribers/{holder["id"]}"' in text
    assert "card.block" in text and "card.unblock" not in text
    await ada.submit_action("card.block", {"reason": "fraud"}, serial=serial)
    text = await ada.get_page_text(page)
    assert "Card blocked." in text and "card.unblock" in text and "card.lose" in text
    await ada.submit_action("card.unblock", {}, serial=serial)
    await ada.submit_action("card.block", {"reason": "stolen"}, serial=serial)
    text = await ada.get_page_text(page)
    assert "permanently blocked (stolen)" in text
    assert "card.unblock" not in text and "card.block" not in text
    rejected = await ada.submit_action("card.unblock", {}, serial=serial)
    assert "Card is permanently blocked" in rejected.text


async def test_block_reason_has_its_label_in_the_audit_log_and_the_timeline(
    ada: ConsoleClient, harness: Harness
) -> None:
    holder = await harness.create_subscriber()
    serial = await harness.create_card(holder["id"])
    await ada.submit_action("card.block", {"reason": "customer_request"}, serial=serial)
    log = await ada.get_page_text(f"/console/audit?resource_id={serial}&event=card.blocked")
    assert "<ins>Customer request</ins>" in log
    timeline = await ada.get_page_text(f"/console/subscribers/{holder['id']}/timeline")
    for page in (log, timeline, await ada.get_page_text(f"/console/cards/{serial}")):
        assert "Customer request" in page and "customer_request" not in page


async def test_child_card_shows_its_spending_and_escapes_the_name(
    ada: ConsoleClient, harness: Harness
) -> None:
    parent, serial = await harness.create_subscriber(), await create_card(harness)
    await link_child_card(harness, serial, parent["id"])
    await harness.database.execute(
        "UPDATE cards SET holder_name = $2 WHERE serial = $1", serial, XSS_PAYLOAD
    )
    response = await ada.get(f"/console/cards/{serial}")
    assert 'max="100.00" aria-label="Spent with this card"' in response.text
    assert "&lt;script&gt;" in response.text and XSS_PAYLOAD not in response.text
    assert XSS_PAYLOAD not in (await ada.get("/console/cards")).text


async def test_unassigned_card_can_be_linked_from_its_page(
    ada: ConsoleClient, harness: Harness
) -> None:
    serial = await create_card(harness)
    text = await ada.get_page_text(f"/console/cards/{serial}")
    for action in ("card.link", "card.child"):
        assert text.count(f"/console/actions/{action}?card_serial={serial}") == 1
    form = await ada.get_partial(f"/console/actions/card.link?card_serial={serial}")
    assert f'value="{serial}"' in form.text


async def test_invalid_filters_are_reported_and_ignored(
    ada: ConsoleClient, harness: Harness
) -> None:
    serial = await create_card(harness)
    text = await ada.get_page_text("/console/cards?subscriber_id=nobody&search=NEW")
    assert "Customer: No customer matches." in text and serial in text
    partial = (await ada.get_partial("/console/cards?status=NONSENSE")).text
    assert 'id="filter-errors" role="alert" hx-swap-oob="true"><p' in partial and serial in partial
    partial = (await ada.get_partial("/console/cards?search=NEW")).text
    assert 'hx-swap-oob="true"></div>' in partial, "the previous error is cleared"


async def test_card_of_a_restricted_subscriber_is_masked_and_can_be_blocked(
    ada: ConsoleClient, harness: Harness
) -> None:
    hidden = await harness.create_restricted_subscriber()
    serial = await harness.create_card(hidden["id"])
    text = await ada.get_page_text(f"/console/cards/{serial}")
    assert "Card of a restricted customer" in text and "card.block" in text
    assert "Aminata" not in text and hidden["id"] not in text
    response = await ada.submit_action("card.block", {"reason": "lost"}, serial=serial)
    assert response.status_code == 200
    assert serial not in await ada.get_page_text("/console/cards")


async def test_keysets_are_created_rotated_and_retired_without_showing_their_keys(
    ada: ConsoleClient,
) -> None:
    imported = {"name": "City cards", "meta_read_key": "0" * 32, "file_read_key": "AB" * 16}
    created = await ada.submit_action("keyset.create", imported)
    assert created.headers["HX-Redirect"] == "/console/keysets"
    await ada.submit_action("keyset.rotate", {"name": "City cards"})
    page = await ada.get_page_text("/console/keysets")
    assert "<code>66E94B</code>" in page and "AB" * 16 not in page
    assert len(re.findall(r'data-label="Version" class="labeled">([12])<', page)) == 2
    newest = re.findall(r"keyset\.retire\?id=(cks_\w+)", page)[0]
    form = await ada.get_page_text(f"/console/actions/keyset.retire?id={newest}")
    assert "Cards that stop working: <strong>0</strong>" in form
    refused = await ada.submit_action("keyset.retire", {"cards": "7"}, id=newest)
    assert "must be 0, the number of cards with these keys" in refused.text
    await ada.submit_action("keyset.retire", {"cards": "0"}, id=newest)
    page = await ada.get_page_text("/console/keysets")
    assert "Keyset retired." in page and newest not in re.findall(r"retire\?id=(cks_\w+)", page)


async def test_card_is_personalized_in_two_steps_and_its_keys_are_shown_once(
    ada: ConsoleClient, console_clients: ConsoleClients, harness: Harness
) -> None:
    page = f"/console/cards/{await create_card(harness)}/personalize"
    assert "needs an NFC UID of 7 bytes" in await ada.get_page_text(page)
    serial = await create_card(harness, uid="04:DE:5F:1E:AC:C0:40")
    page = f"/console/cards/{serial}/personalize"
    assert "No active keyset" in await ada.get_page_text(page)
    await ada.submit_action("keyset.create", {"name": "City cards"})
    text = await ada.get_page_text(page)
    (keyset_id,) = re.findall(r'<option value="(cks_\w+)">City cards, version 1', text)
    sheet = (await ada.post_partial(page, {"keyset_id": keyset_id})).text
    keys = re.findall(r"<code>([0-9A-F]{32})</code>", sheet)
    assert len(keys) == 5 and "data-print" in sheet
    assert "04DE5F1EACC040" in sheet
    assert re.search(r"<code>4000E0C1F121([0-9A-F]{2}0000){3}</code>", sheet)
    text = await ada.get_page_text(page)
    assert not any(key in text for key in keys)
    support = await console_clients.create_signed_in("S")
    assert (await support.get(page)).status_code == 403
    assert "/personalize" not in await support.get_page_text(f"/console/cards/{serial}")
    assert 'name="card_proof.url"' in text and "/console/actions/card.confirm?serial=" in text
    rejected = await ada.submit_action("card.confirm", {"card_proof.url": "nothing"}, serial=serial)
    assert "Link of the tap must be" in rejected.text
    uid, meta_read_key, file_read_key = map(bytes.fromhex, ("04DE5F1EACC040", keys[2], keys[1]))
    chip = SoftwareCard(uid, meta_read_key, file_read_key)
    proof = chip.tap()
    url = f"https://pay.example/t?picc_data={proof.picc_data}&cmac={proof.cmac}"
    await ada.submit_action("card.confirm", {"card_proof.url": url}, serial=serial)
    text = await ada.get_page_text(f"/console/cards/{serial}")
    assert "The card now signs its taps." in text and "last counter 1" in text


async def test_keys_of_a_customers_card_are_shown_with_the_approval(
    ada: ConsoleClient, harness: Harness
) -> None:
    serial = await harness.create_card((await harness.create_subscriber())["id"])
    keyset = await create_keyset(harness)
    await set_rules(harness, build_rule("keysets"))
    page, form = f"/console/cards/{serial}/personalize", {"keyset_id": keyset["id"]}
    assert 'name="approval_reason"' in (await ada.post_partial(page, form)).text
    sent = await ada.post_partial(page, {**form, "approval_reason": "Worn chip"})
    path = sent.headers["hx-redirect"]
    assert "Issue new keys for card" in await ada.get_page_text(path)
    await approve(harness, {"id": path.rpartition("/")[2]})
    text = await ada.get_page_text(path)
    keys = set(re.findall(r"[0-9A-F]{32}", text)) - {"0" * 32}  # the URL has zeros
    assert len(keys) == 5
    assert "Sdm mac offset" in text
    later = await ada.get_page_text(path)
    assert not any(key in later for key in keys)


async def test_rejected_taps_are_listed_with_a_link_to_the_alert(
    ada: ConsoleClient, harness: Harness
) -> None:
    pos, chip = await create_signing_pos(harness, balance="100")
    proof = tap(chip)
    assert (await pos.pay("10", card_proof=proof)).status_code == 200
    path = f"/console/cards/{pos.card}"
    assert "may have been cloned" not in await ada.get_page_text(path)
    assert (await pos.pay("10", card_proof=proof)).status_code == 409
    (alert,) = await list_clone_alerts(harness)
    for page in (path, f"{path}/taps"):
        text = await ada.get_page_text(page)
        assert f'href="/console/compliance/alerts/{alert["id"]}"' in text
        assert "Already used" in text and "Accepted" in text
    text = await ada.get_page_text(f"/console/compliance/alerts/{alert['id']}")
    assert f'href="{path}"' in text


async def test_alert_about_an_unlinked_card_is_found_among_many(
    ada: ConsoleClient, harness: Harness
) -> None:
    pos, chip = await create_signing_pos(harness, balance="100")
    proof = tap(chip)
    await pos.pay("10", card_proof=proof)
    await pos.pay("10", card_proof=proof)
    (alert,) = await list_clone_alerts(harness)
    await harness.database.execute("UPDATE alerts SET subscriber_id = NULL")
    await harness.database.execute(
        """UPDATE cards SET subscriber_id = NULL, account_id = NULL, pin_holder_id = NULL,
               linked_at = NULL, status = 'UNASSIGNED'"""
    )
    for _ in range(55):
        body = {"alert_type": "by hand", "severity": "HIGH", "details": {}}
        await harness.post("/api/v1/compliance/alerts", json=body, auth=harness.get_service_auth())
    text = await ada.get_page_text(f"/console/cards/{pos.card}")
    assert f'href="/console/compliance/alerts/{alert["id"]}"' in text
    await harness.database.execute("UPDATE alerts SET status = 'resolved'")
    assert "may have been cloned" not in await ada.get_page_text(f"/console/cards/{pos.card}")


async def test_serial_does_not_reveal_the_alert_of_a_restricted_customer(
    harness: Harness,
) -> None:
    pos, chip = await create_signing_pos(harness, balance="100")
    proof = tap(chip)
    await pos.pay("10", card_proof=proof)
    await pos.pay("10", card_proof=proof)
    compliance = await harness.create_admin("C")
    query = {"card_serial": pos.card}
    found = await harness.get("/api/v1/compliance/alerts", params=query, auth=compliance)
    assert len(found.json()["data"]) == 1
    await harness.put(
        f"/api/v1/subscribers/{pos.customer['id']}", json={"restricted": True}, auth=compliance
    )
    found = await harness.get("/api/v1/compliance/alerts", params=query, auth=compliance)
    assert found.json()["data"] == []


URL = "/console/cards/upload"
HEADER = "Serial No.,MAC Address\n"


def parse_counts(text: str) -> list[str]:
    """Return the counts of created, skipped, failed and total rows."""
    return re.findall(r"<dd>([\d,]+)</dd>", text)


async def test_upload_reports_created_skipped_and_failed_rows(
    ada: ConsoleClient, harness: Harness
) -> None:
    form = await ada.get_page_text(URL)
    assert 'hx-encoding="multipart/form-data"' in form and "<progress data-upload" in form
    file = f"{HEADER}UP-1,04A22B1A6F8001\nUP-2,nonsense\n<b>&,\nUP-1,\n".encode()
    text = (await ada.post_file(URL, file)).text
    assert parse_counts(text) == ["1", "0", "3", "4"]
    assert 'data-label="Row">3</td><td data-label="Serial">UP-2<' in text
    assert "&lt;b&gt;&amp;" in text and "<b>" not in text
    assert "Serial No. is a duplicate of row 2" in text
    text = (await ada.post_file(URL, f"{HEADER}UP-1,04A22B1A6F8001\n".encode())).text
    assert parse_counts(text) == ["0", "1", "0", "1"]
    assert "already imported. Nothing changed." in text
    assert "UP-1" in await ada.get_page_text("/console/cards?status=UNASSIGNED")


async def test_long_error_list_is_truncated_and_downloadable_as_csv(ada: ConsoleClient) -> None:
    rows = "".join(f"=BAD {number},\n" for number in range(3000))
    text = (await ada.post_file(URL, (HEADER + rows).encode())).text
    assert parse_counts(text) == ["0", "0", "3,000", "3,000"]
    assert text.count('data-label="Row"') == 200 and "2,800 more in the download." in text
    link = re.search(r'href="data:text/csv;charset=utf-8,([^"]+)" download', text)
    assert link is not None
    stored = read_rows(unquote_to_bytes(link[1]))
    assert stored[0] == ["Row", "Serial No.", "Error"] and len(stored) == 3001
    assert stored[-1][:2] == ["3001", "'=BAD 2999"], "formulas must be escaped"


@each(
    "content, message",
    [
        (b"", "The file must start with the header Serial No.,MAC Address"),
        (b"Name,Phone\nA,B\n", "The file must start with the header"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "The file must be UTF-8."),
        (HEADER.encode() + b'"TAP-1,\n', "The file is not valid CSV"),
        (HEADER.encode() + b"A,\n" * 10_001, "The file must have at most 10000 rows."),
    ],
)
async def test_invalid_file_creates_no_cards(
    ada: ConsoleClient, content: bytes, message: str
) -> None:
    response = await ada.post_file(URL, content)
    assert response.status_code == 200
    assert "No cards imported" in response.text and message in response.text


async def test_file_with_only_a_header_is_reported(ada: ConsoleClient) -> None:
    text = (await ada.post_file(URL, HEADER.encode())).text
    assert "a header but no rows" in text and parse_counts(text) == ["0", "0", "0", "0"]


async def test_form_without_a_file_creates_no_cards(ada: ConsoleClient) -> None:
    response = await ada.post_partial(URL, {"file": "cards.csv"})
    assert response.status_code == 200 and "No cards imported" in response.text


async def test_console_upload_has_the_file_size_limit_of_the_api(ada: ConsoleClient) -> None:
    """The console accepts a larger body for the form overhead, but not a larger file."""
    content = f"{HEADER}UP-LARGE,\n".encode()
    content += b"\n".ljust(60_000, b" ") * ((8 * 1024 * 1024 - len(content)) // 60_000 + 1)
    response = await ada.post_file(URL, content)
    assert "Request body too large" in response.text and parse_counts(response.text) == []
    page_text = await ada.get_page_text("/console/cards?search=UP-LARGE")
    assert "/console/cards/UP-LARGE" not in page_text


@pytest.mark.parametrize("role", ["C", "S", "F"])
async def test_only_system_admins_can_upload_cards(
    console_clients: ConsoleClients, role: str
) -> None:
    console = await console_clients.create_signed_in(role)
    assert (await console.get(URL)).status_code == 403
    assert (await console.post_file(URL, f"{HEADER}UP-9,\n".encode())).status_code == 403
    assert "UP-9" not in await console.get_page_text("/console/cards")


async def test_upload_requires_the_csrf_token_of_the_session(ada: ConsoleClient) -> None:
    response = await ada.post_file(URL, f"{HEADER}UP-8,\n".encode(), csrf="0" * 64)
    assert response.status_code == 403
    assert "UP-8" not in await ada.get_page_text("/console/cards")


async def test_child_card_can_be_edited_and_gets_a_new_pin(
    ada: ConsoleClient, harness: Harness
) -> None:
    serial, parent = await create_child_card(harness, child_relationship="son")
    page = f"/console/cards/{serial}"
    text = await ada.get_page_text(page)
    assert "son" in text and ">Edit child card<" in text
    form = await ada.get_partial(f"/console/actions/card.update?serial={serial}")
    assert 'value="Ibrahim Kamara"' in form.text and 'value="100.00"' in form.text
    values = {"child_name": "Sia Kamara", "child_relationship": "niece", "daily_limit": "75"}
    response = await ada.submit_action("card.update", values, serial=serial)
    assert "HX-Redirect" in response.headers, response.text
    text = await ada.get_page_text(page)
    assert "Child card updated." in text and "Sia Kamara" in text and "niece" in text
    response = await ada.submit_action("card.update", {"daily_limit": "0"}, serial=serial)
    assert "Fix the highlighted fields" in response.text
    pins = {"old_pin": CHILD_PIN, "new_pin": "6027"}
    response = await ada.submit_action("card.change_pin", pins, serial=serial)
    assert "HX-Redirect" in response.headers, response.text
    await ada.submit_action("card.reset_pin", serial=serial)
    code = await harness.get_pending_code(parent["phone_number"])
    text = await ada.get_page_text(page)
    assert "The parent sets the new PIN in chat." in text and not contains_digits(text, code)
    assert "last code" in text and "Queued" in text


async def test_edit_of_a_child_card_is_rejected_if_the_name_has_changed(
    ada: ConsoleClient, harness: Harness
) -> None:
    serial, _ = await create_child_card(harness)
    form = await ada.get_partial(f"/console/actions/card.update?serial={serial}")
    seen = form.text.partition('name="seen" value="')[2].partition('"')[0]
    await ada.submit_action("card.update", {"child_name": "Sia Kamara"}, serial=serial)
    values = {"child_name": "Ibrahim Kamara", "seen": seen}
    response = await ada.submit_action("card.update", values, serial=serial)
    assert "HX-Redirect" not in response.headers
    assert "Sia Kamara" in await ada.get_page_text(f"/console/cards/{serial}")


async def test_only_child_cards_in_use_can_be_edited(ada: ConsoleClient, harness: Harness) -> None:
    serial, parent = await create_child_card(harness)
    own_card = await harness.create_card(parent["id"])
    await ada.submit_action("card.block", {"reason": "lost"}, serial=serial)
    for card in (serial, own_card):
        text = await ada.get_page_text(f"/console/cards/{card}")
        assert "card.update" not in text and "_pin" not in text


async def test_lost_card_is_replaced_in_two_steps(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    customer = await harness.create_subscriber()
    old = await harness.create_card(customer["id"])
    not_linked = dict.fromkeys(("type", "account_id", "pin_holder_id", "linked_at"))
    new = await harness.create_card(customer["id"], status="UNASSIGNED", **not_linked)
    support = await console_clients.create_signed_in("S")
    assert "card.replace?serial=" in await support.get_page_text(f"/console/cards/{old}")
    too_early = await support.get(f"/console/cards/{old}/replace")
    assert too_early.headers["Location"] == f"/console/cards/{old}"
    begun = await support.submit_action("card.replace", {"reason": "lost"}, serial=old)
    assert begun.headers["HX-Redirect"] == f"/console/cards/{old}/replace"
    text = await support.get_page_text(f"/console/cards/{old}/replace")
    assert "Code for the customer" in text and "card.replace_confirm?serial=" in text
    code = await harness.get_pending_code(customer["phone_number"])
    form = {"card_serial": new, "otp": code}
    await support.submit_action("card.replace_confirm", form, serial=old)
    assert 'class="plastic"' in await support.get_page_text(f"/console/cards/{new}")


def test_rejected_counters_are_drawn_below_the_genuine_card() -> None:
    counters = (("accepted", 5), ("used", 3), ("accepted", 4), ("accepted", 3))  # newest first
    taps = {"data": [{"result": result, "counter": counter} for result, counter in counters]}
    chart = build_tap_marks(taps)
    assert chart is not None
    assert [(mark.counter, mark.is_accepted) for mark in chart.marks] == [
        (3, True),
        (4, True),
        (3, False),
        (5, True),
    ]
    assert chart.marks[0].y > chart.marks[1].y > chart.marks[3].y
    assert build_tap_marks({"data": taps["data"][2:]}) is None, "no rejected tap"


async def test_empty_list_of_taps_says_what_is_missing(
    ada: ConsoleClient, harness: Harness
) -> None:
    serial = await create_card(harness, uid="04:DE:5F:1E:AC:C0:41")
    page = f"/console/cards/{serial}/taps"
    text = await ada.get_page_text(page)
    assert "sign its taps, so they are not recorded" in text and f"{serial}/personalize" in text
    keyset_id = ids.decode(ids.CARD_KEYSET, (await create_keyset(harness))["id"])
    keys = {"keyset_id": keyset_id, "key_version": 1, "master_keyset_id": keyset_id}
    serial = await create_card(harness, uid="04:DE:5F:1E:AC:C0:42", authenticity="sun", **keys)
    text = await ada.get_page_text(f"/console/cards/{serial}/taps")
    assert "Link the card to a customer." in text and "/console/actions/card.link" in text
    linked = await link_card(harness, serial, (await harness.create_subscriber())["id"])
    assert linked.status_code == 200, linked.text
    text = await ada.get_page_text(f"/console/cards/{serial}/taps")
    assert "Taps at terminals appear here" in text and "card.link" not in text


@pytest.mark.parametrize(
    ("reason", "expected", "refused"),
    [
        ("customer_request", "pays only after it is unblocked", False),
        ("lost", "it can never pay again", True),
    ],
)
async def test_personalization_says_what_a_blocked_card_can_do(
    ada: ConsoleClient, harness: Harness, reason: str, expected: str, refused: bool
) -> None:
    await ada.submit_action("keyset.create", {"name": "City cards"})
    person = await harness.create_subscriber()
    serial = await create_card(harness, uid="04:DE:5F:1E:AC:C0:41")
    await link_card(harness, serial, person["id"])
    page = f"/console/cards/{serial}/personalize"
    text = await ada.get_page_text(page)
    assert "Issue keys" in text and "<details><summary>The card is encoded" in text
    await ada.submit_action("card.block", {"reason": reason}, serial=serial)
    text = await ada.get_page_text(page)
    assert expected in text and ("Issue keys" not in text) == refused
    assert ("card.replace" if refused else "card.unblock") in text
