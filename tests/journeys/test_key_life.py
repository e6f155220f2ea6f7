"""Credential lifecycle: an app's API key, a terminal's key, and a partner's two secrets."""

import httpx2

from drivers.actors import (
    Admin,
    App,
    Partner,
    Record,
    Terminal,
    new_request_id,
    require_error,
    require_success,
)
from drivers.in_process import AppTransport
from harness import BearerAuth, Harness, HmacAuth
from tapgate.server.gateway import create_app

OFFICE = "203.0.113.7"
ELSEWHERE = "198.51.100.9"


def with_key(app: App, rotated: Record) -> App:
    return App(app.client, BearerAuth(rotated["key"], app.id), app.id)


async def get_key(ada: Admin, key_id: str) -> Record:
    keys = await ada.list_all("admin/api-keys")
    (record,) = [key for key in keys if key["id"] == key_id]
    return record


async def test_api_key_is_limited_observed_and_rotated_without_an_outage(
    harness: Harness, local_admin: Admin
) -> None:
    ada = local_admin
    app = await ada.create_app("balance:read", "payments:write")
    back_office = await ada.create_app()
    aminata = await ada.create_funded_customer("100.00", back_office)
    mohamed = await ada.create_funded_customer("10.00", back_office)
    url = f"admin/api-keys/{app.id}"
    assert (await get_key(ada, app.id))["last_used_at"] is None

    # The key is accepted only from the app's office, and with its own rate.
    limits = {"allowed_ips": ["203.0.113.0/24"], "rate_limit": 1, "burst": 3}
    require_success(await ada.put(url, **limits))
    gateway = create_app(harness.services)
    async with (
        httpx2.AsyncClient(
            transport=AppTransport(gateway, OFFICE), base_url="http://gateway"
        ) as office,
        httpx2.AsyncClient(
            transport=AppTransport(gateway, ELSEWHERE), base_url="http://gateway"
        ) as elsewhere,
    ):
        response = await app.with_client(elsewhere).get(f"balance/{aminata.id}")
        assert require_error(response) == (403, "FORBIDDEN")
        app = app.with_client(office)
        response = await app.get(f"balance/{aminata.id}")
        assert (response.status_code, response.headers["X-RateLimit-Limit"]) == (200, "1")
        for _ in range(50):  # a slow machine refills the bucket between requests
            if (response := await app.get(f"balance/{aminata.id}")).status_code != 200:
                break
        assert require_error(response) == (429, "RATE_LIMITED")
        assert int(response.headers["Retry-After"]) >= 1
        require_success(await back_office.get(f"balance/{aminata.id}"))  # has its own bucket
        require_success(await ada.put(url, rate_limit=1000, burst=1000))
        require_success(await app.get(f"balance/{aminata.id}"))
        await harness.services.authenticator.api_keys.last_used.flush()
        assert (await get_key(ada, app.id))["last_used_at"] is not None

        # During the grace period both keys work, and a retry with the new key is a replay.
        transfer = {
            "sender_id": aminata.id,
            "recipient_phone_number": mohamed.phone,
            "amount": "20.00",
            "pin": aminata.pin,
            "request_id": new_request_id(),
        }
        paid = require_success(await app.post("wallet/transfer-p2p", **transfer))
        rotated = require_success(await ada.post(f"{url}/rotate", grace_seconds=600))
        assert rotated["id"] == app.id and rotated["allowed_ips"] == limits["allowed_ips"]
        second = with_key(app, rotated)
        for caller in (app, second):
            response = await caller.post("wallet/transfer-p2p", **transfer)
            assert require_success(response) == paid
            assert response.headers["Idempotent-Replayed"] == "true"
        assert await mohamed.get_balance() == "30.00"

        # A further rotation ends the oldest key, and one without a grace period also the previous.
        third = with_key(app, require_success(await ada.post(f"{url}/rotate", grace_seconds=600)))
        assert require_error(await app.get(f"balance/{aminata.id}")) == (401, "UNAUTHORIZED")
        for caller in (second, third):
            require_success(await caller.get(f"balance/{aminata.id}"))
        fourth = with_key(app, require_success(await ada.post(f"{url}/rotate")))
        for caller in (second, third):
            response = await caller.get(f"balance/{aminata.id}")
            assert require_error(response) == (401, "UNAUTHORIZED")
        assert require_success(await fourth.post("wallet/transfer-p2p", **transfer)) == paid


async def test_terminal_learns_what_became_of_its_request_after_a_rotation(
    local_admin: Admin,
) -> None:
    ada = local_admin
    app = await ada.create_app()
    aminata = await ada.create_funded_customer("100.00", app)
    merchant = await ada.create_merchant()
    front, record = await ada.create_terminal(merchant, "Front till")
    back, _ = await ada.create_terminal(merchant, "Back till")

    # The terminal gets no response to either payment. Then its key is replaced.
    paid, declined = new_request_id(), new_request_id()
    receipt = require_success(await front.pay("40.00", aminata.card, request_id=paid))
    response = await front.pay("400.00", aminata.card, request_id=declined)
    assert require_error(response) == (402, "INSUFFICIENT_FUNDS")
    old_key = front.auth
    assert isinstance(old_key, HmacAuth)
    url = f"processors/{merchant.id}/keys"
    front = Terminal(ada.client, require_success(await ada.post(url, terminal_id=record["id"])))
    assert (await ada.delete(f"{url}/{old_key.id}")).status_code == 204
    stolen = Terminal(ada.client, {"api_key_id": old_key.id, "hmac_secret": old_key.secret})
    assert require_error(await stolen.get(f"pos/payments/{paid}")) == (401, "UNAUTHORIZED")

    # With the new key, it learns the outcomes. A retry pays no second time.
    for caller in (front, merchant.server):
        assert require_success(await caller.get(f"pos/payments/{paid}")) == receipt
        outcome = require_success(await caller.get(f"pos/payments/{declined}"))
        assert outcome == {"status": "failed", "code": "INSUFFICIENT_FUNDS"}
        response = await caller.get(f"pos/payments/{new_request_id()}")
        assert require_error(response) == (404, "TRANSACTION_NOT_FOUND")
    retried = await front.pay("40.00", aminata.card, request_id=paid)
    assert require_success(retried) == receipt
    assert await aminata.get_balance() == "60.00"

    # Other terminals and merchants learn nothing.
    rival = await ada.create_merchant("Bangura Stores")
    for other in (back, rival.server):
        response = await other.get(f"pos/payments/{paid}")
        assert require_error(response) == (404, "TRANSACTION_NOT_FOUND")


async def test_partner_rotates_key_and_webhook_secret_without_losing_a_top_up(
    local_admin: Admin,
) -> None:
    ada = local_admin
    app = await ada.create_app()
    aminata = await app.register_customer("Aminata Kamara")
    created = require_success(await ada.post("admin/partners", name="Sierra Bank"))
    bank = Partner(ada.client, created)
    await ada.fund_partner(bank, "1000.00")
    first = require_success(await bank.top_up("10.00", aminata, "SB-1"))
    second = require_success(await bank.send_webhook("20.00", aminata, "SB-2"))

    # The bank switches its servers one by one, so old and new secrets are in use concurrently.
    url = f"admin/partners/{bank.id}"
    new_key = require_success(await ada.post(f"{url}/keys"))
    new_secret = require_success(await ada.post(f"{url}/rotate-webhook-secret", grace_seconds=600))
    switched = Partner(ada.client, created | new_key | new_secret)
    for number, server in enumerate((bank, switched), 3):
        require_success(await server.top_up("10.00", aminata, f"SB-{number}"))
        require_success(await server.send_webhook("20.00", aminata, f"SB-{number}-W"))
        again = require_success(await server.top_up("10.00", aminata, "SB-1"))
        assert again["transaction_id"] == first["transaction_id"]
        again = require_success(await server.send_webhook("20.00", aminata, "SB-2"))
        assert again["transaction_id"] == second["transaction_id"]
    assert await aminata.get_balance() == "90.00"

    # When all servers are switched, the old key is deleted and the old secret ended.
    assert (await ada.delete(f"{url}/keys/{created['api_key_id']}")).status_code == 204
    last_secret = require_success(await ada.post(f"{url}/rotate-webhook-secret"))
    final = Partner(ada.client, created | new_key | last_secret)
    assert require_error(await bank.top_up("10.00", aminata, "SB-5")) == (401, "UNAUTHORIZED")
    for server in (bank, switched):
        response = await server.send_webhook("20.00", aminata, "SB-6")
        assert require_error(response) == (401, "UNAUTHORIZED")
    require_success(await final.top_up("10.00", aminata, "SB-5"))
    require_success(await final.send_webhook("20.00", aminata, "SB-6"))
    assert await aminata.get_balance() == "120.00"
    assert await ada.get_balance(bank.id) == "880.00"
