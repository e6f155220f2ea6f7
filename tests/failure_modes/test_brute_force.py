"""Brute-force attacks on PINs, one-time codes, and passwords across two processes.

A four-digit PIN has ten thousand values and a six-digit code a million, so the number of attempts
must be limited across all endpoints and processes.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx2
import pytest

from builders.participants import AGENT_PIN, create_agent, create_sub_agent
from builders.payments import PAY_URL, VERIFY_URL, PosDriver, new_request_id
from harness import PIN, WRONG_PIN, Harness
from tapgate.auth import login_failures
from tapgate.auth.passwords import Passwords

API_PREFIX = "/api/v1"
LOGIN_URL = f"{API_PREFIX}/admin/login"
Clients = Sequence[httpx2.AsyncClient]
TryPin = Callable[[httpx2.AsyncClient, str], Awaitable[httpx2.Response]]


@pytest.fixture
def clients(client: httpx2.AsyncClient, other_process_client: httpx2.AsyncClient) -> Clients:
    return client, other_process_client


def count_codes(responses: Sequence[httpx2.Response]) -> Counter[str]:
    return Counter(response.json().get("code", "none") for response in responses)


async def build_pin_attempts(harness: Harness) -> tuple[dict[str, Any], dict[str, TryPin]]:
    """Return a subscriber, and one function per endpoint that sends a PIN for verification."""
    pos = await PosDriver.create(harness)
    holder, card = pos.customer, pos.card
    friend = await harness.create_subscriber()
    agent = await create_agent(harness, balance="100")
    blank = await harness.create_card(holder["id"])
    admin = await harness.create_admin()
    user = f"{API_PREFIX}/subscribers/{holder['id']}"

    def build_attempt(url: str, auth: Any, name: str, **fields: Any) -> TryPin:
        async def attempt(client: httpx2.AsyncClient, pin: str) -> httpx2.Response:
            idempotency = {"request_id": new_request_id()} if url == PAY_URL else {}
            return await client.post(url, json={**fields, **idempotency, name: pin}, auth=auth)

        return attempt

    amount = {"amount": "1"}
    day = f"{harness.services.clock():%Y-%m-%d}"
    friends_card = await harness.create_card(friend["id"])
    attempts = {
        "verify": build_attempt(f"{user}/verify-pin", admin, "pin"),
        "change": build_attempt(f"{user}/change-pin", admin, "old_pin", new_pin="8305"),
        "link": build_attempt(
            f"{API_PREFIX}/cards/link", admin, "pin", subscriber_id=holder["id"], card_serial=blank
        ),
        "child": build_attempt(
            f"{API_PREFIX}/cards/child",
            admin,
            "parent_pin",
            parent_subscriber_id=holder["id"],
            card_serial=blank,
            child_pin="8305",
            daily_limit="1",
            child_name="Isatu",
        ),
        "terminal": build_attempt(VERIFY_URL, pos.merchant_auth, "pin", card_serial=card),
        "pay": build_attempt(PAY_URL, pos.merchant_auth, "pin", card_serial=card, **amount),
        "send": build_attempt(
            f"{API_PREFIX}/wallet/transfer-p2p",
            harness.get_service_auth(),
            "pin",
            sender_id=holder["id"],
            recipient_card_serial=friends_card,
            **amount,
        ),
        "transfer": build_attempt(
            f"{API_PREFIX}/wallet/transfer",
            await harness.create_api_key("payments:write"),
            "pin",
            from_account_id=holder["account_id"],
            to_account_id=friend["account_id"],
            **amount,
        ),
        "statement": build_attempt(
            f"{API_PREFIX}/wallet/account-statement",
            harness.get_service_auth(),
            "pin",
            subscriber_id=holder["id"],
            from_date=day,
            to_date=day,
        ),
        "cash-out": build_attempt(
            f"{API_PREFIX}/agents/cashout",
            admin,
            "pin",
            agent_id=agent["id"],
            subscriber_id=holder["id"],
            agent_pin=AGENT_PIN,
            **amount,
        ),
    }
    return holder, attempts


async def test_all_endpoints_that_verify_a_pin_share_three_attempts(
    harness: Harness, clients: Clients
) -> None:
    """Attempts are counted atomically and per subscriber.

    A counter per endpoint would allow three attempts at each endpoint. A counter that is read
    before it is written would allow all attempts that run concurrently.
    """
    holder, attempts = await build_pin_attempts(harness)
    responses = await asyncio.gather(
        *(
            attempt(client, WRONG_PIN)
            for _ in range(2)
            for attempt in attempts.values()
            for client in clients
        )
    )
    assert count_codes(responses) == {"INVALID_PIN": 3, "ACCOUNT_LOCKED": 4 * len(attempts) - 3}
    # The correct PIN is rejected by every endpoint while the PIN is locked.
    responses = await asyncio.gather(
        *(
            attempt(process_client, PIN)
            for attempt in attempts.values()
            for process_client in clients
        )
    )
    assert count_codes(responses) == {"ACCOUNT_LOCKED": 2 * len(attempts)}
    user = f"{API_PREFIX}/subscribers/{holder['id']}"
    record = (await harness.get(user, auth=harness.get_service_auth())).json()
    assert (record["balance"], record["cards_count"]) == ("1000.00", 2)


async def test_pin_lock_is_not_released_by_success_on_another_card_or_subscriber(
    harness: Harness,
) -> None:
    """Each subscriber and each child card has its own counter."""
    pos, other_pos = await PosDriver.create(harness), await PosDriver.create(harness)
    user = f"{API_PREFIX}/subscribers/{pos.customer['id']}"
    child_pin = "8305"
    (blank,) = await create_unlinked_cards(harness, 1)
    child = {
        "parent_subscriber_id": pos.customer["id"],
        "card_serial": blank,
        "parent_pin": PIN,
        "child_pin": child_pin,
        "daily_limit": "100",
        "child_name": "Isatu",
    }
    response = await harness.post(
        f"{API_PREFIX}/cards/child", json=child, auth=await harness.create_admin()
    )
    assert response.status_code == 201, response.text

    async def verify_at_terminal(serial: str, pin: str) -> httpx2.Response:
        body = {"card_serial": serial, "pin": pin}
        return await harness.post(VERIFY_URL, json=body, auth=pos.merchant_auth)

    for _ in range(3):
        await verify_at_terminal(pos.card, WRONG_PIN)
    for _ in range(2):
        assert (await verify_at_terminal(other_pos.card, PIN)).is_success
        assert (await verify_at_terminal(blank, child_pin)).is_success
        assert count_codes([await verify_at_terminal(pos.card, PIN)]) == {"ACCOUNT_LOCKED": 1}
    response = await harness.get(user, auth=harness.get_service_auth())
    assert response.json()["pin_locked_until"] is not None


async def create_unlinked_cards(harness: Harness, count: int) -> list[str]:
    serials = [f"NEW-{number}" for number in range(count)]
    file = "Serial No.,MAC Address\n" + "".join(f"{serial},\n" for serial in serials)
    response = await harness.post(
        f"{API_PREFIX}/cards/upload-csv",
        content=file,
        headers={"Content-Type": "text/csv"},
        auth=await harness.create_admin(),
    )
    assert response.json()["created"] == count, response.text
    return serials


async def test_all_endpoints_that_verify_an_agent_pin_share_three_attempts(
    harness: Harness, clients: Clients
) -> None:
    """An agent's PIN authorizes cash-ins, cash-outs, float transfers, and PIN changes."""
    agent = await create_agent(harness, balance="100")
    customer = await harness.create_subscriber(balance="50")
    sub_agent = await create_sub_agent(harness, agent)
    admin = await harness.create_admin()
    cash = {"agent_id": agent["id"], "subscriber_id": customer["id"], "amount": "1"}
    bodies: dict[str, dict[str, str]] = {
        "cashin": {**cash, "agent_pin": WRONG_PIN},
        "cashout": {**cash, "agent_pin": WRONG_PIN, "pin": PIN},
        "transfer": {
            "from_agent_id": agent["id"],
            "to_agent_id": sub_agent["id"],
            "amount": "1",
            "pin": WRONG_PIN,
        },
        f"{agent['id']}/change-pin": {"old_pin": WRONG_PIN, "new_pin": "8305"},
    }
    responses = await asyncio.gather(
        *(
            client.post(f"{API_PREFIX}/agents/{path}", json=body, auth=admin)
            for path, body in bodies.items()
            for client in clients
            for _ in range(3)
        )
    )
    assert count_codes(responses) == {"INVALID_PIN": 3, "ACCOUNT_LOCKED": 21}


@pytest.fixture
def compared_hashes(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Stored hashes passed to the password check; None means that no such account exists."""
    hashes: list[str | None] = []
    matches = Passwords.matches

    async def record_and_match(self: Passwords, stored: str | None, *arguments: str) -> bool:
        hashes.append(stored)
        return await matches(self, stored, *arguments)

    monkeypatch.setattr(Passwords, "matches", record_and_match)
    return hashes


async def test_password_comparisons_are_limited_across_spellings_addresses_and_processes(
    harness: Harness, clients: Clients, compared_hashes: list[str | None]
) -> None:
    """Email spelling, a forged X-Forwarded-For, and another process grant no extra attempts."""
    email = "eve@example.com"
    new = {"email": email, "password": "correct horse battery", "name": "E", "role": "finance_user"}
    await harness.post(f"{API_PREFIX}/admin/users", json=new, auth=await harness.create_admin())
    spellings = (email, "EVE@example.com", "Eve@Example.Com")
    responses = await asyncio.gather(
        *(
            client.post(
                LOGIN_URL,
                json={"email": spelling, "password": f"wrong horse {number}"},
                headers={"X-Forwarded-For": f"203.0.113.{number}"},
            )
            for number, (client, spelling, _) in enumerate(
                itertools.product(clients, spellings, range(3))
            )
        )
    )
    max_failures = login_failures.MAX_FAILURES
    assert count_codes(responses) == {
        "UNAUTHORIZED": max_failures,
        "RATE_LIMITED": 18 - max_failures,
    }
    assert len(compared_hashes) == max_failures
    credentials = {"email": email, "password": "correct horse battery"}
    for process_client in clients:
        count = count_codes([await process_client.post(LOGIN_URL, json=credentials)])
        assert count == {"RATE_LIMITED": 1}
    assert len(compared_hashes) == max_failures


@pytest.mark.parametrize("purpose", ["restricted-access", "reset-pin"])
async def test_one_time_code_allows_three_attempts(
    harness: Harness, clients: Clients, purpose: str
) -> None:
    """A six-digit code can be guessed if concurrent attempts are not all counted."""
    is_reset = purpose == "reset-pin"
    holder = await (
        harness.create_subscriber() if is_reset else harness.create_restricted_subscriber()
    )
    admin = await harness.create_admin("S")
    url = f"{API_PREFIX}/subscribers/{holder['id']}/{purpose}"
    assert (await harness.post(url, auth=admin)).is_success
    code = await harness.get_pending_code(holder["phone_number"])

    async def redeem(client: httpx2.AsyncClient, otp: str) -> httpx2.Response:
        if is_reset:
            body = {"otp": otp, "new_pin": "8305"}
            return await client.post(f"{url}/confirm", json=body, auth=admin)
        return await client.post(f"{url}/verify", json={"otp": otp}, auth=admin)

    wrong = f"{(int(code) + 1) % 1_000_000:06d}"
    responses = await asyncio.gather(*(redeem(client, wrong) for client in clients * 5))
    remaining = Counter(response.json()["details"]["attempts_remaining"] for response in responses)
    assert remaining == {2: 1, 1: 1, 0: 8}
    assert count_codes([await redeem(harness.client, code)]) == {"INVALID_OTP": 1}
