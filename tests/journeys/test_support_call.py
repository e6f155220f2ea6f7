"""Support calls: a mistaken block, a forgotten PIN, and restricted records."""

import pytest

from drivers.actors import (
    Admin,
    App,
    Customer,
    Terminal,
    require_error,
    require_error_details,
    require_success,
)
from drivers.deployments import Deployment
from harness import PIN, WRONG_PIN

NEW_PIN, LAST_PIN = "8264", "6419"


@pytest.fixture
async def sorie(ada: Admin) -> Admin:
    """Log in as a new support user."""
    return await ada.create_admin("Sorie", "S")


@pytest.fixture
async def app(ada: Admin) -> App:
    return await ada.create_app()


@pytest.fixture
async def aminata(ada: Admin, app: App) -> Customer:
    return await ada.create_funded_customer("500.00", app, "Aminata Kamara")


@pytest.fixture
async def terminal(ada: Admin) -> Terminal:
    return (await ada.create_merchant()).server


async def test_compliance_unblocks_a_subscriber_and_support_resets_the_pin(
    deployment: Deployment, ada: Admin, sorie: Admin, aminata: Customer, terminal: Terminal
) -> None:
    officer = await ada.create_admin("Isata", "C")
    url = f"subscribers/{aminata.id}"

    # Support finds the blocked subscriber by phone number.
    response = await sorie.post(f"{url}/block")
    assert require_error(response) == (400, "INVALID_REQUEST")
    require_success(await sorie.post(f"{url}/block", reason="reported a theft"))
    assert require_error(await terminal.pay("10.00", aminata.card)) == (403, "SUBSCRIBER_BLOCKED")
    (found,) = await sorie.list_all("subscribers", phone_number=aminata.phone)
    assert (found["id"], found["status"]) == (aminata.id, "BLOCKED")
    assert found["status_reason"] == "reported a theft"

    # Support may block but not unblock; a compliance officer may unblock.
    response = await sorie.post(f"{url}/unblock")
    assert require_error(response) == (403, "FORBIDDEN")
    assert require_error_details(response)["required"]
    assert require_success(await officer.post(f"{url}/unblock"))["subscriber"]["status"] == "ACTIVE"
    assert require_error(await officer.post(f"{url}/unblock")) == (409, "NOT_BLOCKED")
    require_success(await terminal.pay("10.00", aminata.card))

    # Wrong PINs at the terminal and in the app lock the PIN.
    response = await terminal.pay("10.00", aminata.card, WRONG_PIN)
    assert require_error_details(response)["attempts_remaining"] == 2
    response = await aminata.app.post(f"{url}/verify-pin", pin=WRONG_PIN)
    assert require_error_details(response)["attempts_remaining"] == 1
    response = await terminal.verify_card(aminata.card, WRONG_PIN)
    assert (require_error(response), require_error_details(response)["attempts_remaining"]) == (
        (400, "INVALID_PIN"),
        0,
    )
    for response in (
        await terminal.pay("10.00", aminata.card, PIN),
        await aminata.app.post(f"{url}/change-pin", old_pin=PIN, new_pin=NEW_PIN),
    ):
        assert require_error(response) == (403, "ACCOUNT_LOCKED")
    locked = (await aminata.get_record())["pin_locked_until"]
    assert require_error_details(response)["locked_until"] == locked
    require_success(await terminal.pay("10.00", aminata.card))  # no PIN required

    # Support sends a code to the subscriber, who enters it in chat; the first one is mistyped.
    messenger = deployment.create_messenger_app()
    require_success(await sorie.post(f"{url}/reset-pin"))
    code = await deployment.get_pending_code(aminata.phone)
    mistyped = f"{(int(code) + 1) % 1_000_000:06d}"
    response = await messenger.post(f"{url}/reset-pin/confirm", otp=mistyped, new_pin=NEW_PIN)
    assert require_error(response) == (400, "INVALID_OTP")
    assert require_error_details(response)["attempts_remaining"] == 2
    require_success(await messenger.post(f"{url}/reset-pin/confirm", otp=code, new_pin=NEW_PIN))
    response = await messenger.post(f"{url}/reset-pin/confirm", otp=code, new_pin=PIN)
    assert require_error(response) == (400, "INVALID_OTP")  # single use
    assert (await aminata.get_record())["pin_locked_until"] is None
    assert require_error(await terminal.pay("10.00", aminata.card, PIN)) == (400, "INVALID_PIN")
    require_success(await terminal.pay("10.00", aminata.card, NEW_PIN))

    # The subscriber changes the PIN.
    for body, code in (
        ({"old_pin": PIN, "new_pin": LAST_PIN}, "INVALID_PIN"),
        ({"old_pin": NEW_PIN, "new_pin": NEW_PIN}, "SAME_PIN"),
        ({"old_pin": NEW_PIN, "new_pin": "1234567890"}, "INVALID_REQUEST"),
    ):
        response = await aminata.app.post(f"{url}/change-pin", **body)
        assert (response.status_code, response.json()["code"]) == (400, code), response.text
    response = await aminata.app.post(f"{url}/change-pin", old_pin=NEW_PIN, new_pin=LAST_PIN)
    require_success(response)
    require_success(await terminal.pay("10.00", aminata.card, LAST_PIN))
    assert await aminata.get_balance() == "460.00"
