"""Console sign-in and sign-out: cookies, redirects, error messages, and the end of a session."""

import html
import re
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from builders.auth import EMAIL, PASSWORD, enroll_app
from builders.http_apps import LogCapture
from drivers.console import SESSION_COOKIE, ConsoleClient, ConsoleClients
from harness import Harness
from tapgate.http.api.services import Services
from tapgate.server.gateway_installation import create_first_admin


@pytest.fixture(autouse=True)
async def admin_account(services: Services) -> None:
    """Create a system_admin with a password."""
    await create_first_admin(services, EMAIL, PASSWORD)


def _parse_cookie(response: httpx2.Response, name: str = SESSION_COOKIE) -> dict[str, Any]:
    """Return the attributes of a cookie set by the response, without its value."""
    cookie = SimpleCookie(response.headers["Set-Cookie"])[name]
    return {key: value for key, value in cookie.items() if value}


async def _is_signed_in(console: ConsoleClient) -> bool:
    response = await console.client.get("/console")
    assert response.status_code in (200, 303)
    if response.status_code == 303:
        assert response.headers["Location"] == "/console/sign-in"
    return response.status_code == 200


async def test_sign_in_sets_an_http_only_cookie(signed_out_client: ConsoleClient) -> None:
    response = await signed_out_client.sign_in(EMAIL, PASSWORD)
    assert (response.status_code, response.headers["Location"]) == (303, "/console")
    assert _parse_cookie(response) == {
        "path": "/",
        "max-age": "86400",
        "httponly": True,
        "samesite": "Strict",
    }
    assert await _is_signed_in(signed_out_client)
    assert PASSWORD not in response.text


async def test_production_cookie_has_the_host_prefix(console_clients: ConsoleClients) -> None:
    services = console_clients.harness.services
    services.settings = services.settings.replace(environment="production")
    console = console_clients.create_signed_out("https://gateway")
    response = await console.sign_in(EMAIL, PASSWORD)
    assert _parse_cookie(response, f"__Host-{SESSION_COOKIE}") == {
        "path": "/",
        "max-age": "86400",
        "httponly": True,
        "samesite": "Strict",
        "secure": True,
    }
    assert await _is_signed_in(console)
    token = console.client.cookies[f"__Host-{SESSION_COOKIE}"]
    console.client.cookies.clear()
    console.client.cookies.set(SESSION_COOKIE, token)
    assert not await _is_signed_in(console), "the cookie without the prefix must be ignored"


async def test_cookie_is_secure_wherever_the_console_has_an_https_address(
    console_clients: ConsoleClients,
) -> None:
    services = console_clients.harness.services
    services.settings = services.settings.replace(
        environment="staging", public_url="https://staging.example.com"
    )
    console = console_clients.create_signed_out("https://gateway")
    response = await console.sign_in(EMAIL, PASSWORD)
    assert _parse_cookie(response, f"__Host-{SESSION_COOKIE}")["secure"]
    assert await _is_signed_in(console)


async def test_failed_sign_in_does_not_reveal_whether_the_account_exists(
    signed_out_client: ConsoleClient,
) -> None:
    known = await signed_out_client.sign_in(EMAIL, "incorrect horse")
    unknown = await signed_out_client.sign_in("nobody@example.com", "incorrect horse")
    assert known.status_code == unknown.status_code == 401
    assert known.text.replace(EMAIL, "") == unknown.text.replace("nobody@example.com", "")
    assert "Incorrect email or password." in known.text
    assert "incorrect horse" not in known.text
    assert signed_out_client.session is None


async def test_console_and_api_share_the_sign_in_attempt_limit(
    signed_out_client: ConsoleClient, client: httpx2.AsyncClient
) -> None:
    for _ in range(5):
        assert (await signed_out_client.sign_in(EMAIL, "incorrect horse")).status_code == 401
    response = await signed_out_client.sign_in(EMAIL, PASSWORD)
    assert response.status_code == 429 and "Too many attempts" in response.text
    api_response = await client.post(
        "/api/v1/admin/login", json={"email": EMAIL, "password": PASSWORD}
    )
    assert api_response.status_code == 429, "the console and the API share the limit"


async def test_sign_out_ends_the_session_in_the_console_and_the_api(
    signed_out_client: ConsoleClient,
    console_clients: ConsoleClients,
    other_process_client: httpx2.AsyncClient,
) -> None:
    await signed_out_client.sign_in(EMAIL, PASSWORD)
    token = signed_out_client.session
    assert token is not None
    response = await signed_out_client.post_form("/console/sign-out")
    assert response.headers["Location"] == "/console/sign-in"
    assert _parse_cookie(response)["max-age"] == "0"
    assert not await _is_signed_in(signed_out_client)
    with_old_cookie = ConsoleClient(other_process_client)
    with_old_cookie.client.cookies.set(SESSION_COOKIE, token)
    assert not await _is_signed_in(with_old_cookie)
    bearer = {"Authorization": f"Bearer {token}"}
    assert (await other_process_client.get("/api/v1/admin/me", headers=bearer)).status_code == 401


async def test_sign_out_clears_browser_storage(signed_out_client: ConsoleClient) -> None:
    await signed_out_client.sign_in(EMAIL, PASSWORD)
    response = await signed_out_client.post_form("/console/sign-out")
    assert response.headers["Clear-Site-Data"] == '"storage"'
    assert (await signed_out_client.get("/console/sign-in")).headers["Cache-Control"] == "no-store"


async def test_successful_sign_in_ends_the_previous_session(
    signed_out_client: ConsoleClient, other_process_client: httpx2.AsyncClient
) -> None:
    await signed_out_client.sign_in(EMAIL, PASSWORD)
    first = signed_out_client.session
    await signed_out_client.sign_in(EMAIL, "incorrect horse")
    assert await _is_signed_in(signed_out_client), "a failed sign-in must not end the session"
    await signed_out_client.sign_in(EMAIL, PASSWORD)
    assert await _is_signed_in(signed_out_client)
    bearer = {"Authorization": f"Bearer {first}"}
    assert (await other_process_client.get("/api/v1/admin/me", headers=bearer)).status_code == 401


async def test_sign_out_requires_a_post_with_the_csrf_token(
    signed_out_client: ConsoleClient,
) -> None:
    await signed_out_client.sign_in(EMAIL, PASSWORD)
    assert (await signed_out_client.get("/console/sign-out")).status_code == 405
    assert (await signed_out_client.post_without_csrf("/console/sign-out")).status_code == 403
    assert await _is_signed_in(signed_out_client)


async def test_disabling_an_admin_ends_the_session_immediately(
    console_clients: ConsoleClients, ada: ConsoleClient, harness: Harness
) -> None:
    ben = await harness.create_admin("S")
    console = console_clients.create_signed_out()
    console.set_session(ben)
    assert await _is_signed_in(console)
    await ada.submit_action("administrator.disable", id=ben.id)
    assert not await _is_signed_in(console)
    partial = await console.get_partial("/console/subscribers")
    assert partial.headers["HX-Redirect"].startswith("/console/sign-in?")


@pytest.mark.parametrize("size", [0, 100_000])
async def test_form_has_no_effect_if_the_session_ends_while_the_body_is_received(
    console_clients: ConsoleClients, ada: ConsoleClient, harness: Harness, size: int
) -> None:
    """The larger form exceeds the limit for signed-out clients."""
    ben, target = await harness.create_admin("A"), await harness.create_admin("S")
    console = console_clients.create_signed_out()
    console.set_session(ben)
    csrf = await console.get_csrf_token()

    async def body() -> AsyncIterator[bytes]:
        yield b"padding=" + b"x" * size
        await ada.submit_action("administrator.disable", id=ben.id)
        yield f"&csrf={csrf}".encode()

    response = await console.client.post(
        f"/console/actions/administrator.disable?id={target.id}",
        content=body(),
        headers={
            "Content-Type": "application/x-www-form-urlencoded",
            "Sec-Fetch-Site": "same-origin",
        },
    )
    assert (response.status_code, response.headers["Location"]) == (303, "/console/sign-in")
    other = console_clients.create_signed_out()
    other.set_session(target)
    assert await _is_signed_in(other)


async def test_form_consumes_at_most_one_token_of_the_rate_limit(ada: ConsoleClient) -> None:
    remaining = [
        int((await ada.post_without_csrf("/console/sign-out")).headers["X-RateLimit-Remaining"])
        for _ in range(2)
    ]
    assert remaining[0] - remaining[1] <= 1


async def test_sign_in_redirects_to_the_requested_page_even_after_a_wrong_password(
    signed_out_client: ConsoleClient,
) -> None:
    response = await signed_out_client.get("/console/subscribers?search=ami&status=ACTIVE")
    address = response.headers["Location"]
    page_text = await signed_out_client.get_page_text(address)
    assert "session expired" not in page_text, "no session existed that could expire"
    wrong = await signed_out_client.post_without_csrf(
        address, {"email": EMAIL, "password": "wrong"}
    )
    form_action = re.search(r'action="([^"]+)"', wrong.text)
    assert form_action is not None
    response = await signed_out_client.post_without_csrf(
        html.unescape(form_action[1]), {"email": EMAIL, "password": PASSWORD}
    )
    assert response.headers["Location"] == "/console/subscribers?search=ami&status=ACTIVE"


async def test_expired_session_is_reported_and_sign_in_returns_to_the_page(
    signed_out_client: ConsoleClient,
) -> None:
    signed_out_client.referer = page = "/console/subscribers?search=ami"
    response = await signed_out_client.get_partial("/console/actions/subscriber.register")
    address = response.headers["HX-Redirect"]
    assert "Your session expired" in await signed_out_client.get_page_text(address)
    response = await signed_out_client.post_without_csrf(
        address, {"email": EMAIL, "password": PASSWORD}
    )
    assert response.headers["Location"] == page


async def test_upload_after_the_session_ended_redirects_to_sign_in(ada: ConsoleClient) -> None:
    """The file exceeds the size limit for signed-out clients, but that is not reported."""
    page, csrf = "/console/cards/upload", await ada.get_csrf_token()
    await ada.get(page)
    await ada.post_form("/console/sign-out")
    response = await ada.post_file(page, b"Serial No.\n" + b"x" * 100_000, csrf=csrf)
    assert response.status_code == 200, response.text
    assert response.headers["HX-Redirect"].startswith("/console/sign-in?to=%2Fconsole%2Fcards")
    assert "ended" in response.headers["HX-Redirect"]


@pytest.mark.parametrize(
    "target_url",
    ["//evil.example", "https://evil.example", "/\\evil.example", "x", "/\t/evil.example"],
)
async def test_sign_in_does_not_redirect_to_another_site(
    signed_out_client: ConsoleClient, target_url: str
) -> None:
    address = f"/console/sign-in?{urlencode({'to': target_url})}"
    response = await signed_out_client.post_without_csrf(
        address, {"email": EMAIL, "password": PASSWORD}
    )
    assert (response.status_code, response.headers["Location"]) == (303, "/console")


INVALID_SESSION_COOKIES = (
    "x",
    "",
    "é",
    "a=b",
    '"quoted"',
    "ey.J.x",
    "x" * 5000,
    "%00",
    "tapgate_session",
)


async def test_invalid_session_cookie_redirects_to_sign_in(
    signed_out_client: ConsoleClient,
) -> None:
    for cookie in INVALID_SESSION_COOKIES:
        header = [(b"Cookie", f"{SESSION_COOKIE}={cookie}; tapgate_said={cookie}".encode())]
        response = await signed_out_client.client.get("/console", headers=header)
        assert (response.status_code, response.headers["Location"]) == (303, "/console/sign-in")
        form = await signed_out_client.client.get("/console/sign-in", headers=header)
        assert form.status_code == 200


async def test_api_does_not_accept_the_session_cookie(ada: ConsoleClient, harness: Harness) -> None:
    """Otherwise another site could make a browser send authenticated API requests."""
    person = await harness.create_subscriber()
    for path in ("admin/me", "subscribers", f"subscribers/{person['id']}", "admin/api-keys"):
        assert (await ada.client.get(f"/api/v1/{path}")).status_code == 401
    blocking = f"/api/v1/subscribers/{person['id']}/block"
    assert (await ada.client.post(blocking, json={"reason": "x"})).status_code == 401


async def test_sign_in_page_redirects_when_already_signed_in(ada: ConsoleClient) -> None:
    response = await ada.get("/console/sign-in")
    assert (response.status_code, response.headers["Location"]) == (303, "/console")


async def test_flash_message_is_shown_once_and_escaped(ada: ConsoleClient) -> None:
    hostile = "PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg=="  # a script element
    response = await ada.get(
        "/console", Cookie=f"{SESSION_COOKIE}={ada.session}; tapgate_said={hostile}"
    )
    assert "&lt;script&gt;alert(1)" in response.text and "<script>alert" not in response.text
    assert "tapgate_said=; " in response.headers["Set-Cookie"]
    assert 'class="toast"' not in (await ada.get("/console")).text


async def test_sign_in_says_who_can_reset_a_forgotten_password(
    signed_out_client: ConsoleClient,
) -> None:
    text = await signed_out_client.get_page_text("/console/sign-in")
    help_text = text[text.index("Forgot your password?") : text.index("</details>")]
    assert "Ask a system admin for a link" in help_text


async def test_sign_in_asks_for_the_code_of_an_enrolled_app(
    signed_out_client: ConsoleClient, services: Services
) -> None:
    admin_id = await services.database.fetchval("SELECT id FROM admins")
    app = await enroll_app(services, admin_id)

    asked = await signed_out_client.sign_in(EMAIL, PASSWORD)
    assert asked.status_code == 403
    assert PASSWORD not in asked.text

    async def submit(page: str, otp: str) -> httpx2.Response:
        match = re.search(r'name="pending" value="([^"]+)"', page)
        assert match is not None
        form = {"pending": match[1], "otp": otp}
        return await signed_out_client.post_without_csrf("/console/sign-in", form)

    wrong = await submit(asked.text, "000000")
    assert (wrong.status_code, "The code is wrong" in wrong.text) == (400, True)
    response = await submit(wrong.text, app.at(services.clock()))
    assert (response.status_code, response.headers["Location"]) == (303, "/console")
    page = (await signed_out_client.client.get("/console/account")).text
    assert "this session" in page
    assert "Replace app" in page
    sessions = await services.database.fetch("SELECT is_console, factor_at FROM sessions")
    assert [(row["is_console"], row["factor_at"] is not None) for row in sessions] == [(True, True)]


async def test_automatic_refresh_does_not_keep_a_session_alive(
    signed_out_client: ConsoleClient, services: Services
) -> None:
    await signed_out_client.sign_in(EMAIL, PASSWORD)
    sessions = services.authenticator.sessions
    await sessions.last_seen.flush()
    headers = {"HX-Request": "true", "HX-Trigger": "figures"}
    await signed_out_client.client.get("/console", headers=headers)
    assert not sessions.last_seen.pending
    await signed_out_client.client.get("/console")
    assert sessions.last_seen.pending


async def test_session_that_may_only_enroll_opens_the_account_page(
    signed_out_client: ConsoleClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.authenticator.factors, "is_required", True)
    response = await signed_out_client.sign_in(EMAIL, PASSWORD)
    assert response.headers["Location"] == "/console/account"
    page = (await signed_out_client.get("/console/account")).text
    assert "A second factor is required" in page
    shown = await signed_out_client.submit_action("account.start_totp", {})
    assert "data:image/svg+xml" in shown.text
    for path in ("/console", "/console/subscribers", "/console/settings", "/console/search?q=ada"):
        refused = await signed_out_client.client.get(path)
        assert (refused.status_code, refused.headers.get("Location")) == (303, "/console/account")
    headers = {"HX-Request": "true"}
    refused = await signed_out_client.client.get("/console", headers=headers)
    assert refused.headers["HX-Redirect"] == "/console/account"
    await enroll_app(services, await services.database.fetchval("SELECT id FROM admins"))
    page = (await signed_out_client.get("/console/account")).text
    assert "Sign out, then sign in again with your second factor." in page


async def test_invited_administrator_sets_a_password(
    console_clients: ConsoleClients, signed_out_client: ConsoleClient
) -> None:
    ada = await console_clients.create_signed_in("A")
    form = {"name": "Ben", "email": "ben@example.com", "role": "support_user"}
    created = await ada.submit_action("administrator.create", form)
    match = re.search(r"/console/invitation#([\w-]+)", created.text)
    assert match is not None
    body = {"token": match[1], "password": "short"}
    rejected = await signed_out_client.post_without_csrf("/console/invitation", body)
    assert rejected.status_code == 422
    body["password"] = PASSWORD
    accepted = await signed_out_client.post_without_csrf("/console/invitation", body)
    assert accepted.headers["Location"] == "/console/sign-in"
    assert (await signed_out_client.sign_in(form["email"], PASSWORD)).status_code == 303


async def test_root_leads_to_the_console(signed_out_client: ConsoleClient) -> None:
    response = await signed_out_client.client.get("/")
    assert (response.status_code, response.headers["location"]) == (303, "/console")
    assert (await signed_out_client.client.head("/")).status_code == 303
    assert (await signed_out_client.client.post("/", content=b"")).status_code == 405


async def test_unknown_path_has_a_page_for_browsers_and_json_for_clients(
    ada: ConsoleClient, signed_out_client: ConsoleClient
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = await ada.get("/nothing-here", **browser)
    assert page.status_code == 404 and "<h1>Page not found</h1>" in page.text
    assert 'href="/console/transactions"' in page.text
    page = await signed_out_client.get("/nothing-here", **browser)
    assert page.status_code == 404 and 'href="/console/sign-in"' in page.text
    for path, headers in (("/nothing-here", dict[str, str]()), ("/api/v1/nothing-here", browser)):
        response = await ada.get(path, **headers)
        assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND")


async def test_log_line_names_the_page_without_its_values(
    ada: ConsoleClient, log_capture: LogCapture
) -> None:
    for path in ("/console/subscribers/sub_secret", "/console/nodes", "/console/no-such-page"):
        await ada.get(path)
    assert [line["endpoint"] for line in log_capture.records] == [
        "/console/subscribers/{id}",
        "/console/nodes",
        "/console",
    ]
    assert "sub_secret" not in log_capture.text


async def test_pages_are_compressed_only_if_no_other_site_chose_the_query(
    ada: ConsoleClient,
) -> None:
    encodings = {
        site: (await ada.get("/console/transactions?search=x", **{"Sec-Fetch-Site": site})).headers
        for site in ("same-origin", "none", "same-site", "cross-site", "")
    }
    compressed = [site for site, head in encodings.items() if "content-encoding" in head]
    assert compressed == ["same-origin", "none"]
    response = await ada.post_partial("/console/actions/administrator.create", {"name": "x" * 50})
    assert "content-encoding" not in response.headers


async def test_csrf_token_is_masked_differently_in_every_page(ada: ConsoleClient) -> None:
    tokens = [await ada.get_csrf_token() for _ in range(3)]
    assert len(set(tokens)) == 3
    for token in tokens:
        response = await ada.client.post(
            "/console/actions/onboarding.dismiss",
            headers={"X-CSRF-Token": token, "Sec-Fetch-Site": "same-origin", "HX-Request": "true"},
        )
        assert response.status_code != 403
    for wrong in ("", "zz", "00", tokens[0][:-1] + "0", tokens[0][:64], tokens[0] + tokens[1]):
        response = await ada.client.post(
            "/console/sign-out", headers={"X-CSRF-Token": wrong, "Sec-Fetch-Site": "same-origin"}
        )
        assert response.status_code == 403 or wrong == tokens[0]
