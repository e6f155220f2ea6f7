"""Tenant isolation: access depends on the owner of a record, not on knowing its ID.

The complete access table is tested in tests/gateway. These tests cover attack scenarios.
"""

from typing import Any

import httpx2

from agents.builders import AGENT_PIN, create_agent, create_sub_agent
from harness import PIN, Harness
from partners.builders import (
    FUND_URL,
    create_partner,
    get_wallet_balance,
    parse_error,
    post_webhook,
)
from partners.builders import get_auth as get_partner_auth
from pos.builders import REFUND_URL, PosDriver, new_request_id
from processors.builders import create_processor as new_processor
from processors.builders import get_auth
from tapgate import ids
from tapgate.schemas.subscribers import ImageRule
from transactions.builders import submit_and_get_id

API_PREFIX = "/api/v1"


async def test_payments_and_terminals_of_another_merchant_appear_not_to_exist(
    harness: Harness,
) -> None:
    """A merchant must not refund another merchant's payment.

    A different response for existing records would reveal where customers shop.
    """
    ours, theirs = await PosDriver.create(harness), await PosDriver.create(harness)
    request_id = new_request_id()
    payment = (await theirs.pay("100", request_id=request_id)).json()
    terminal = await theirs.create_terminal()

    unknown_id = ids.encode(ids.TRANSACTION, harness.services.new_id())
    responses = [await ours.refund(item) for item in (payment["transaction_id"], unknown_id)]
    assert [parse_error(response) for response in responses] == [(404, "TRANSACTION_NOT_FOUND")] * 2
    assert responses[0].content == responses[1].content

    unknown_id = ids.encode(ids.TERMINAL, harness.services.new_id())
    responses = [await ours.pay("1", terminal_id=entry) for entry in (terminal, unknown_id)]
    assert [parse_error(response) for response in responses] == [(404, "TERMINAL_NOT_FOUND")] * 2
    assert responses[0].content == responses[1].content

    # Idempotency keys are per merchant: this is a new payment, not a replay of theirs.
    own_payment = await ours.pay("7", request_id=request_id)
    assert own_payment.json()["transaction_id"] != payment["transaction_id"]
    assert "Idempotent-Replayed" not in own_payment.headers
    assert await theirs.get_balance() == 900_00


async def test_neighboring_transaction_ids_cannot_be_refunded(harness: Harness) -> None:
    """Transaction IDs are nearly sequential, so an attacker can enumerate them."""
    ours, theirs = await PosDriver.create(harness), await PosDriver.create(harness)
    await theirs.pay("100")
    own_id = ids.decode(ids.TRANSACTION, (await ours.pay("1")).json()["transaction_id"]) or 0
    await theirs.pay("100")
    for step in (*range(-20, 0), *range(1, 20)):
        neighbor_id = ids.encode(ids.TRANSACTION, own_id + step)
        assert parse_error(await ours.refund(neighbor_id)) == (404, "TRANSACTION_NOT_FOUND")
    assert await theirs.get_balance() == 800_00


async def test_terminal_key_is_valid_only_for_its_own_terminal(harness: Harness) -> None:
    """A stolen terminal key must not act for other terminals of the same or another merchant."""
    pos = await PosDriver.create(harness)
    first, second = await new_processor(harness), await new_processor(harness)
    terminals = []
    for processor in (first, first, second):
        url = f"{API_PREFIX}/processors/{processor['processor_id']}/terminals"
        response = await harness.client.post(
            url, json={"name": "Till"}, auth=await harness.create_admin()
        )
        terminals.append(response.json())
    terminal_auth = get_auth(terminals[0])
    for other in terminals[1:]:
        response = await pos.pay("1", auth=terminal_auth, terminal_id=other["terminal"]["id"])
        if response.is_success:  # the key's terminal takes precedence over the body's
            url = f"{API_PREFIX}/transactions/{response.json()['transaction_id']}"
            transaction = (await harness.client.get(url, auth=await harness.create_admin())).json()
            assert transaction["terminal_id"] == terminals[0]["terminal"]["id"]
        else:
            assert response.status_code == 404
    # A key cannot be revoked through another merchant's path.
    url = f"{API_PREFIX}/processors/{second['processor_id']}/keys/{terminals[0]['api_key_id']}"
    assert (await harness.client.delete(url, auth=await harness.create_admin())).status_code == 404
    assert (await pos.pay("1", auth=terminal_auth)).is_success


async def test_partner_cannot_spend_from_or_learn_about_another_partner(harness: Harness) -> None:
    """Covers a shared reference, and another partner's ID in the body, header, and webhook path."""
    ours, theirs = [await create_partner(harness, balance="100") for _ in range(2)]
    customer = await harness.create_subscriber()
    payload = {"subscriber_id": customer["id"], "partner_reference": "A-1", "amount": "30"}

    async def fund(partner: dict[str, Any], **fields: Any) -> httpx2.Response:
        return await harness.client.post(
            FUND_URL, json={**payload, **fields}, auth=get_partner_auth(partner)
        )

    assert (await fund(theirs)).is_success
    assert parse_error(await fund(ours, partner_id=theirs["partner"]["id"])) == (
        422,
        "VALIDATION_FAILED",
    )
    # A duplicate-reference error or a replay of their response would be a leak.
    response = await fund(ours, amount="20")
    assert (response.status_code, response.json()["amount"]) == (200, "20.00 SLE")
    disguised = get_partner_auth({**ours, "partner": theirs["partner"]})
    response = await harness.client.post(FUND_URL, json=payload, auth=disguised)
    assert parse_error(response) == (401, "UNAUTHORIZED")
    forged = {**ours, "partner": theirs["partner"]}
    body = {"phone_number": customer["phone_number"], "reference": "A-9", "amount": "1"}
    assert parse_error(await post_webhook(harness.client, forged, body)) == (401, "UNAUTHORIZED")
    assert await get_wallet_balance(harness, customer) == "50.00"


async def test_agent_can_transfer_float_only_to_its_own_sub_agents(harness: Harness) -> None:
    """Agent networks are separate businesses, so float must not cross between them."""
    ours, theirs = [await create_agent(harness, balance="100") for _ in range(2)]
    our_sub_agent, their_sub_agent = [
        await create_sub_agent(harness, item) for item in (ours, theirs)
    ]
    for sender, receiver, expected in (
        (ours, their_sub_agent, 403),
        (ours, theirs, 403),
        (our_sub_agent, ours, 403),
        (our_sub_agent, their_sub_agent, 403),
        (ours, our_sub_agent, 200),
    ):
        body = {
            "from_agent_id": sender["id"],
            "to_agent_id": receiver["id"],
            "amount": "1",
            "pin": AGENT_PIN,
        }
        response = await harness.client.post(
            f"{API_PREFIX}/agents/transfer", json=body, auth=await harness.create_admin()
        )
        assert response.status_code == expected, (sender, receiver)


async def test_kyc_document_is_found_only_under_its_own_subscriber(harness: Harness) -> None:
    """The path contains an owner and a document.

    Checking the owner but loading the document by ID alone would expose any subscriber's passport.
    """
    owner, other = [await harness.create_subscriber() for _ in range(2)]
    admin = await harness.create_admin()
    document = {"document_type": "selfie", "image": ImageRule.example}
    url = f"{API_PREFIX}/subscribers/{owner['id']}/kyc-documents"
    added = (await harness.client.post(url, json=document, auth=admin)).json()["document_id"]
    assert (await harness.client.get(f"{url}/{added}", auth=admin)).status_code == 200
    url = f"{API_PREFIX}/subscribers/{other['id']}/kyc-documents"
    assert (await harness.client.get(f"{url}/{added}", auth=admin)).status_code == 404


async def test_restricted_record_appears_in_no_list_for_any_cursor_or_filter(
    harness: Harness,
) -> None:
    """Lists must apply the same check as single records.

    Covers pages, filters, search, and cursors of other lists.
    """
    unrestricted = await harness.create_subscriber()
    restricted = await harness.create_restricted_subscriber(last_name="Hidden")
    card = await harness.create_card(restricted["id"])
    await harness.deposit(restricted["id"], "500")
    await harness.deposit(unrestricted["id"], "500")
    await submit_and_get_id(harness, "transfer_p2p", restricted["id"], unrestricted["id"], "5")
    key = await harness.create_api_key(
        "subscribers:read", "payments:read", "cards:read", "balance:read", "payments:write"
    )
    cursors = [f"&cursor={ids.encode('cur_', 2**62)}", ""]
    for path in ("subscribers?search=Hidden", "subscribers?", "cards?", "transactions?"):
        for cursor in cursors:
            response = await harness.client.get(f"{API_PREFIX}/{path}&limit=1{cursor}", auth=key)
            text, pages = response.text, 0
            while (next_cursor := response.json()["next_cursor"]) is not None and pages < 50:
                cursors.append(f"&cursor={next_cursor}")
                response = await harness.client.get(
                    f"{API_PREFIX}/{path}&limit=1&cursor={next_cursor}", auth=key
                )
                text += response.text
                pages += 1
            assert response.status_code == 200
            for secret in (restricted["id"], restricted["phone_number"], "Hidden", card):
                assert secret not in text, (path, cursor)
    for path in (
        f"transactions?user_id={restricted['id']}",
        f"transactions?card_serial={card}",
        f"cards?subscriber_id={restricted['id']}",
        f"balance/{restricted['id']}",
        f"cards/{card}",
    ):
        response = await harness.client.get(f"{API_PREFIX}/{path}", auth=key)
        assert response.status_code == 403 or response.json()["data"] == [], path
        assert "Hidden" not in response.text


async def test_payer_is_masked_in_merchant_history_and_refunds(harness: Harness) -> None:
    """A merchant's history must not reveal the full name or phone number of its customers."""
    pos = await PosDriver.create(harness)
    paid = (await pos.pay("10", pin=PIN)).json()
    processor_id = await harness.get_processor_id(pos.merchant_auth)
    url = f"{API_PREFIX}/processors/{processor_id}/transactions"
    for caller in (await harness.create_admin(), await harness.create_api_key("payments:read")):
        text = (await harness.client.get(url, auth=caller)).text
        assert paid["transaction_id"] in text
        assert "Aminata K." in text
        for secret in ("Kamara", pos.customer["phone_number"]):
            assert secret not in text
    body = {"request_id": new_request_id(), "original_transaction_id": paid["transaction_id"]}
    response = await harness.client.post(
        REFUND_URL, json={**body, "reason": "x"}, auth=pos.merchant_auth
    )
    assert "Kamara" not in response.text
