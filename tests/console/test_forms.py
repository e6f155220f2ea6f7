"""Console forms: CSRF protection, same-site redirects, and validation of fields."""

import threading

import msgspec
import pytest

from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate.console.forms import FormData


async def _post_block(console: ConsoleClient, id: str, **headers: str) -> int:
    path = f"/console/actions/subscriber.block?id={id}"
    return (await console.post_without_csrf(path, {"reason": "x"}, **headers)).status_code


async def _is_blocked(harness: Harness, id: str) -> bool:
    response = await harness.client.get(
        f"/api/v1/subscribers/{id}", auth=await harness.create_admin()
    )
    return bool(response.json()["status"] == "BLOCKED")


async def test_form_requires_the_csrf_token_of_its_session(
    ada: ConsoleClient, console_clients: ConsoleClients, harness: Harness
) -> None:
    person = (await harness.create_subscriber())["id"]
    other_token = await (await console_clients.create_signed_in("A")).get_csrf_token()
    own = await ada.get_csrf_token()
    for wrong in ("", "x", other_token, own[:-1], own.upper() + "x", own + own):
        assert await _post_block(ada, person, **{"X-CSRF-Token": wrong}) == 403
    assert await _post_block(ada, person) == 403
    assert not await _is_blocked(harness, person)
    assert await _post_block(ada, person, **{"X-CSRF-Token": own}) == 303
    assert await _is_blocked(harness, person)


async def test_csrf_token_is_accepted_as_a_form_field(ada: ConsoleClient, harness: Harness) -> None:
    person = (await harness.create_subscriber())["id"]
    response = await ada.post_form(
        f"/console/actions/subscriber.block?id={person}", {"reason": "x"}
    )
    assert response.status_code == 303


CROSS_SITE_HEADERS: tuple[dict[str, str], ...] = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://gateway"},
    {"Sec-Fetch-Site": "", "Origin": "http://evil.example"},
    {"Sec-Fetch-Site": "", "Origin": "http://gateway.evil.example"},
    {"Sec-Fetch-Site": "", "Origin": "http://gateway:81"},
    {"Sec-Fetch-Site": "", "Origin": "null"},
    {"Sec-Fetch-Site": "", "Origin": "http://[evil"},
)


async def test_cross_site_form_is_rejected_even_with_the_csrf_token(
    ada: ConsoleClient, signed_out_client: ConsoleClient, harness: Harness
) -> None:
    person = (await harness.create_subscriber())["id"]
    csrf = {"X-CSRF-Token": await ada.get_csrf_token()}
    for headers in CROSS_SITE_HEADERS:
        assert await _post_block(ada, person, **csrf, **headers) == 403, headers
        response = await signed_out_client.post_without_csrf(
            "/console/sign-in", {"email": "a@b.c"}, **headers
        )
        assert response.status_code == 403, "login CSRF"
    assert not await _is_blocked(harness, person)


async def test_same_origin_fetch_metadata_is_accepted_behind_a_proxy(
    ada: ConsoleClient, harness: Harness
) -> None:
    """A proxy may replace the Host header, so Sec-Fetch-Site takes precedence over Origin."""
    person = (await harness.create_subscriber())["id"]
    headers = {"X-CSRF-Token": await ada.get_csrf_token(), "Origin": "https://pay.example.com"}
    assert await _post_block(ada, person, **headers) == 303


async def test_browser_without_fetch_metadata_is_checked_by_origin(
    ada: ConsoleClient, harness: Harness
) -> None:
    person = (await harness.create_subscriber())["id"]
    headers = {"X-CSRF-Token": await ada.get_csrf_token(), "Sec-Fetch-Site": ""}
    assert await _post_block(ada, person, **headers) == 303


OFF_SITE_URLS = (
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


async def test_redirect_after_an_action_stays_on_the_console_site(
    ada: ConsoleClient, harness: Harness
) -> None:
    csrf = (await ada.get_csrf_token()).encode()
    for current_url in OFF_SITE_URLS:
        path = (
            f"/console/actions/subscriber.reset_pin?id={(await harness.create_subscriber())['id']}"
        )
        headers = [
            (b"HX-Request", b"true"),
            (b"HX-Current-URL", current_url.encode()),
            (b"X-CSRF-Token", csrf),
        ]
        response = await ada.client.post(path, headers=headers)
        assert response.status_code == 200, response.text
        target = response.headers["HX-Redirect"]
        assert target.startswith("/") and target[1:2] not in ("/", "\\"), current_url
        assert target.isascii() and target.isprintable()
        assert "x" not in response.cookies


async def test_link_on_a_page_with_a_new_secret_stays_on_the_console_site(
    ada: ConsoleClient,
) -> None:
    ada.referer = "//evil.example"
    response = await ada.submit_action("api_key.create", {"name": "x", "scopes": ["cards:read"]})
    assert 'href="/console"' in response.text and "evil.example" not in response.text


INVALID_FORMS: tuple[dict[str, str], ...] = (
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


async def test_invalid_field_values_are_reported_in_the_form(
    ada: ConsoleClient, harness: Harness
) -> None:
    person = (await harness.create_subscriber())["id"]
    for form in INVALID_FORMS:
        response = await ada.submit_action("subscriber.level", form, id=person)
        assert response.status_code == 200, response.text
        assert 'role="alert"' in response.text, f"{form} was accepted"


async def test_fields_forbidden_to_the_role_are_dropped(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    """The form omits the field for this role, and submitting the field anyway has no effect."""
    person = await harness.create_subscriber()
    support = await console_clients.create_signed_in("S")
    await support.submit_action(
        "subscriber.update", {"first_name": "Mariama", "kyc_level": "3"}, id=person["id"]
    )
    response = await harness.client.get(
        f"/api/v1/subscribers/{person['id']}", auth=harness.get_service_auth()
    )
    record = msgspec.convert(response.json(), dict[str, object])
    assert (record["first_name"], record["kyc_level"]) == ("Mariama", person["kyc_level"])


async def test_large_form_is_parsed_once_and_off_the_main_thread(
    ada: ConsoleClient, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing a photo takes a long time and must not delay other requests of the process."""
    person, csrf = (await harness.create_subscriber())["id"], await ada.get_csrf_token()
    parsed: list[tuple[int, bool]] = []

    def record_parsing(encoded: bytes) -> FormData:
        parsed.append((len(encoded), threading.current_thread() is threading.main_thread()))
        return FormData(encoded)

    monkeypatch.setattr("tapgate.console.page_request.FormData", record_parsing)
    response = await ada.post_without_csrf(
        f"/console/actions/subscriber.document?id={person}",
        {"document_type": "id_front", "image": "+/" * 1_000_000},
        **{"X-CSRF-Token": csrf},
    )
    assert response.status_code == 200 and "JPEG or PNG" in response.text
    assert [on_main_thread for size, on_main_thread in parsed if size > 1_000_000] == [False]
