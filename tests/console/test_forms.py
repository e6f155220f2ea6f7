"""A form is taken from pages of its own session only, and leads to pages of this site only."""

import threading

import msgspec
import pytest

from console.visitor import Visitor, Visitors
from tapgate.console.forms import FormData
from world import World


async def _block(visitor: Visitor, id: str, **headers: str) -> int:
    path = f"/console/acts/subscriber.block?id={id}"
    return (await visitor.send(path, {"reason": "x"}, **headers)).status_code


async def _is_blocked(world: World, id: str) -> bool:
    answer = await world.client.get(f"/api/v1/subscribers/{id}", auth=await world.admin())
    return bool(answer.json()["status"] == "BLOCKED")


async def test_a_form_needs_the_token_of_its_own_session(
    ada: Visitor, visitors: Visitors, world: World
) -> None:
    person = (await world.subscriber())["id"]
    of_another = await (await visitors.of("A")).csrf()
    own = await ada.csrf()
    for wrong in ("", "x", of_another, own[:-1], own.upper() + "x", own + own):
        assert await _block(ada, person, **{"X-CSRF-Token": wrong}) == 403
    assert await _block(ada, person) == 403
    assert not await _is_blocked(world, person)
    assert await _block(ada, person, **{"X-CSRF-Token": own}) == 303
    assert await _is_blocked(world, person)


async def test_the_token_may_also_be_in_the_form(ada: Visitor, world: World) -> None:
    person = (await world.subscriber())["id"]
    answer = await ada.post(f"/console/acts/subscriber.block?id={person}", {"reason": "x"})
    assert answer.status_code == 303


FOREIGN: tuple[dict[str, str], ...] = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://gateway"},
    {"Sec-Fetch-Site": "", "Origin": "http://evil.example"},
    {"Sec-Fetch-Site": "", "Origin": "http://gateway.evil.example"},
    {"Sec-Fetch-Site": "", "Origin": "http://gateway:81"},
    {"Sec-Fetch-Site": "", "Origin": "null"},
    {"Sec-Fetch-Site": "", "Origin": "http://[evil"},
)


async def test_another_sites_form_is_refused_even_with_the_token(
    ada: Visitor, stranger: Visitor, world: World
) -> None:
    person, csrf = (await world.subscriber())["id"], {"X-CSRF-Token": await ada.csrf()}
    for headers in FOREIGN:
        assert await _block(ada, person, **csrf, **headers) == 403, headers
        signing_in = await stranger.send("/console/sign-in", {"email": "a@b.c"}, **headers)
        assert signing_in.status_code == 403, "nobody is signed in as somebody else unknowingly"
    assert not await _is_blocked(world, person)


async def test_a_browser_that_says_same_origin_is_believed_behind_a_proxy(
    ada: Visitor, world: World
) -> None:
    """Many a proxy sends a host of its own; the browser knows better."""
    person = (await world.subscriber())["id"]
    headers = {"X-CSRF-Token": await ada.csrf(), "Origin": "https://pay.example.com"}
    assert await _block(ada, person, **headers) == 303


async def test_an_old_browser_is_known_by_its_origin(ada: Visitor, world: World) -> None:
    person = (await world.subscriber())["id"]
    headers = {"X-CSRF-Token": await ada.csrf(), "Sec-Fetch-Site": ""}
    assert await _block(ada, person, **headers) == 303


ELSEWHERE = (
    "http://gateway//evil.example",
    "http://gateway/\\evil.example",
    "http://gateway/%0d%0aSet-Cookie: x=y",
    "http://gateway/\tevil",
    "//evil.example",
    "///evil.example",
    "\\\\evil.example",
    "javascript:alert(1)",
    "http://evil.example/console",
    "http://[evil",
    "evil",
    "é",
    "",
)


async def test_nobody_is_led_to_another_site(ada: Visitor, world: World) -> None:
    csrf = (await ada.csrf()).encode()
    for came_from in ELSEWHERE:
        path = f"/console/acts/subscriber.reset_pin?id={(await world.subscriber())['id']}"
        headers = [
            (b"HX-Request", b"true"),
            (b"HX-Current-URL", came_from.encode()),
            (b"X-CSRF-Token", csrf),
        ]
        answer = await ada.client.post(path, headers=headers)
        assert answer.status_code == 200, answer.text
        target = answer.headers["HX-Redirect"]
        assert target.startswith("/") and target[1:2] not in ("/", "\\"), came_from
        assert target.isascii() and target.isprintable()
        assert "x" not in answer.cookies


async def test_a_secret_shown_once_leads_back_to_this_site(ada: Visitor) -> None:
    ada.at = "//evil.example"
    answer = await ada.act("api_key.create", {"name": "x", "scopes": ["cards:read"]})
    assert 'href="/console"' in answer.text and "evil.example" not in answer.text


UNACCEPTABLE: tuple[dict[str, str], ...] = (
    {"kyc_level": "9" * 4000},
    {"kyc_level": "9" * 5000},
    {"kyc_level": "²"},
    {"kyc_level": "--1"},
    {"kyc_level": "inf"},
    {"kyc_level": "nan"},
    {"kyc_level": "1e999"},
    {"kyc_status": "\0"},
    {"kyc_status": "x" * 100_000},
)


async def test_no_value_of_a_field_breaks_a_form(ada: Visitor, world: World) -> None:
    person = (await world.subscriber())["id"]
    for form in UNACCEPTABLE:
        answer = await ada.act("subscriber.level", form, id=person)
        assert answer.status_code == 200, answer.text
        assert 'role="alert"' in answer.text, f"{form} was taken"


async def test_what_a_role_may_not_send_is_not_passed_on(visitors: Visitors, world: World) -> None:
    """The form has no such field for them, so whoever adds it by hand gains nothing."""
    person = await world.subscriber()
    support = await visitors.of("S")
    await support.act(
        "subscriber.update", {"first_name": "Mariama", "kyc_level": "3"}, id=person["id"]
    )
    answer = await world.client.get(f"/api/v1/subscribers/{person['id']}", auth=world.service())
    record = msgspec.convert(answer.json(), dict[str, object])
    assert (record["first_name"], record["kyc_level"]) == ("Mariama", person["kyc_level"])


async def test_a_large_form_is_read_once_and_beside_everything_else(
    ada: Visitor, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A photo in a form takes long to read: payments of the same process must not wait for it."""
    person, csrf = (await world.subscriber())["id"], await ada.csrf()
    read: list[tuple[int, bool]] = []

    def recorded(encoded: bytes) -> FormData:
        read.append((len(encoded), threading.current_thread() is threading.main_thread()))
        return FormData(encoded)

    monkeypatch.setattr("tapgate.console.page_request.FormData", recorded)
    answer = await ada.send(
        f"/console/acts/subscriber.document?id={person}",
        {"document_type": "id_front", "image": "+/" * 1_000_000},
        **{"X-CSRF-Token": csrf},
    )
    assert answer.status_code == 200 and "JPEG or PNG" in answer.text
    assert [in_line for size, in_line in read if size > 1_000_000] == [False]
