"""Support calls: a subscriber is blocked by mistake, forgets the PIN, changes it, locks it; and one
whose record is closed to those who have no code from the subscriber's phone."""

import pytest

from journeys.caller import details, done, refused
from journeys.people import App, Customer, Till
from journeys.platform import Platform
from journeys.staff import Admin
from world import PIN, WRONG_PIN

NEW_PIN, LAST_PIN = "8264", "6419"


@pytest.fixture
async def sorie(ada: Admin) -> Admin:
    """Answers the telephone."""
    return await ada.hire("Sorie", "S")


@pytest.fixture
async def app(ada: Admin) -> App:
    return await ada.app()


@pytest.fixture
async def aminata(ada: Admin, app: App) -> Customer:
    return await ada.customer_with("500.00", app, "Aminata Kamara")


@pytest.fixture
async def till(ada: Admin) -> Till:
    return (await ada.merchant()).server


async def test_a_support_call(
    platform: Platform, ada: Admin, sorie: Admin, aminata: Customer, till: Till
) -> None:
    officer = await ada.hire("Isata", "C")
    url = f"subscribers/{aminata.id}"

    # "My card is refused." He finds her by her number: she is blocked.
    answer = await sorie.post(f"{url}/block")
    assert refused(answer) == (400, "INVALID_REQUEST")
    done(await sorie.post(f"{url}/block", reason="reported a theft"))
    assert refused(await till.pay("10.00", aminata.card)) == (403, "SUBSCRIBER_BLOCKED")
    (found,) = await sorie.everything("subscribers", phone_number=aminata.phone)
    assert (found["id"], found["status"]) == (aminata.id, "BLOCKED")
    assert found["status_reason"] == "reported a theft"

    # It was another card. He may block but not unblock; the officer may.
    answer = await sorie.post(f"{url}/unblock")
    assert refused(answer) == (403, "FORBIDDEN")
    assert details(answer)["required"]
    assert done(await officer.post(f"{url}/unblock"))["subscriber"]["status"] == "ACTIVE"
    assert refused(await officer.post(f"{url}/unblock")) == (409, "NOT_BLOCKED")
    done(await till.pay("10.00", aminata.card))

    # "I have forgotten my PIN." She has tried, at the till and in the app, until it was locked.
    answer = await till.pay("10.00", aminata.card, WRONG_PIN)
    assert details(answer)["attempts_remaining"] == 2
    answer = await aminata.app.post(f"{url}/verify-pin", pin=WRONG_PIN)
    assert details(answer)["attempts_remaining"] == 1
    answer = await till.verify(aminata.card, WRONG_PIN)
    assert (refused(answer), details(answer)["attempts_remaining"]) == ((400, "INVALID_PIN"), 0)
    for answer in (
        await till.pay("10.00", aminata.card, PIN),
        await aminata.app.post(f"{url}/change-pin", old_pin=PIN, new_pin=NEW_PIN),
    ):
        assert refused(answer) == (403, "ACCOUNT_LOCKED")
    locked = (await aminata.record())["pin_locked_until"]
    assert details(answer)["locked_until"] == locked
    done(await till.pay("10.00", aminata.card))  # a small payment needs no PIN

    # He has a code sent to her phone; she reads it to him. He mistypes it once.
    done(await sorie.post(f"{url}/reset-pin"))
    code = await platform.code_on_the_phone(aminata.phone)
    mistyped = f"{(int(code) + 1) % 1_000_000:06d}"
    answer = await sorie.post(f"{url}/reset-pin/confirm", otp=mistyped, new_pin=NEW_PIN)
    assert refused(answer) == (400, "INVALID_OTP")
    assert details(answer)["attempts_remaining"] == 2
    done(await sorie.post(f"{url}/reset-pin/confirm", otp=code, new_pin=NEW_PIN))
    answer = await sorie.post(f"{url}/reset-pin/confirm", otp=code, new_pin=PIN)
    assert refused(answer) == (400, "INVALID_OTP")  # a code is good for once
    assert (await aminata.record())["pin_locked_until"] is None
    assert refused(await till.pay("10.00", aminata.card, PIN)) == (400, "INVALID_PIN")
    done(await till.pay("10.00", aminata.card, NEW_PIN))

    # Later she chooses one that she can remember.
    for body, code in (
        ({"old_pin": PIN, "new_pin": LAST_PIN}, "INVALID_PIN"),
        ({"old_pin": NEW_PIN, "new_pin": NEW_PIN}, "SAME_PIN"),
        ({"old_pin": NEW_PIN, "new_pin": "12345"}, "INVALID_REQUEST"),
    ):
        answer = await aminata.app.post(f"{url}/change-pin", **body)
        assert (answer.status_code, answer.json()["code"]) == (400, code), answer.text
    answer = await aminata.app.post(f"{url}/change-pin", old_pin=NEW_PIN, new_pin=LAST_PIN)
    done(answer)
    done(await till.pay("10.00", aminata.card, LAST_PIN))
    assert await aminata.balance() == "460.00"


async def test_a_restricted_subscriber_is_opened_with_a_code_from_the_phone(
    platform: Platform, ada: Admin, sorie: Admin, aminata: Customer, till: Till
) -> None:
    officer = await ada.hire("Isata", "C")
    url = f"subscribers/{aminata.id}"
    done(await officer.put(url, restricted=True))
    colleague = await ada.hire("Kadiatu", "S")

    # Closed to the app, and to everybody at the desk, who cannot even find her.
    for caller in (aminata.app, sorie, ada):
        for path in (url, f"balance/{aminata.id}", f"cards/{aminata.card}"):
            assert refused(await caller.get(path)) == (403, "OTP_REQUIRED")
        assert await caller.everything("subscribers", phone_number=aminata.phone) == []
        assert await caller.everything("cards", search=aminata.card) == []
        answer = await caller.get("transactions", user_id=aminata.id)
        assert refused(answer) == (403, "OTP_REQUIRED")
    # Her card pays as before, and the messenger that she writes to knows her.
    done(await till.pay("10.00", aminata.card, PIN))
    messenger = platform.messenger()
    assert done(await messenger.get(f"balance/{aminata.id}"))["balance"] == "490.00"

    # She calls. With the code from her phone he sees her, and only he.
    done(await sorie.post(f"{url}/restricted-access"))
    code = await platform.code_on_the_phone(aminata.phone)
    answer = await colleague.post(f"{url}/restricted-access/verify", otp=code)
    assert refused(answer) == (400, "INVALID_OTP")
    granted = done(await sorie.post(f"{url}/restricted-access/verify", otp=code))
    assert granted["expires_at"].endswith("Z")
    assert done(await sorie.get(url))["phone_number"] == aminata.phone
    assert await sorie.balance(aminata.id) == "490.00"
    assert len(await sorie.history(aminata.id)) == 2
    (card,) = await sorie.everything("cards", search=aminata.card)
    assert card["subscriber_id"] == aminata.id
    for caller in (aminata.app, colleague, ada):
        assert refused(await caller.get(url)) == (403, "OTP_REQUIRED")

    # Her card is stolen while they talk: blocking never waits for a code.
    done(await colleague.post(f"cards/{aminata.card}/block", reason="stolen"))
    done(await colleague.post(f"{url}/block", reason="stolen bag"))
    assert refused(await till.pay("1.00", aminata.card)) == (403, "CARD_NOT_ACTIVE")
