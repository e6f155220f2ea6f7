"""Console forms and malformed requests: CSRF protection, validation and error pages."""

import html
import itertools
import random
import re
import string
import threading
from pathlib import Path

import msgspec
import pytest

from builders.participants import create_agent
from drivers.console import ConsoleClient, ConsoleClients
from harness import PIN, Harness
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.sites.console.console import ACTIONS
from tapgate.sites.console.forms import FormData
from tapgate.sites.console.labels import humanize
from tapgate.sites.console.page_request import SECURITY_HEADERS


def test_declared_labels_differ_from_field_names() -> None:
    """A label that repeats the name is derived, so that a field has one declaration."""
    fields = {field for action in ACTIONS for field in action.fields}
    assert [field for field in fields if field.declared_label == humanize(field.name)] == []
    assert len([field for field in fields if not field.declared_label]) > 50


async def _post_block(console: ConsoleClient, id: str, **headers: str) -> int:
    path = f"/console/actions/subscriber.block?id={id}"
    return (await console.post_without_csrf(path, {"reason": "x"}, **headers)).status_code


async def _is_blocked(harness: Harness, id: str) -> bool:
    response = await harness.get(f"/api/v1/subscribers/{id}", auth=await harness.create_admin())
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


async def test_form_accepts_names_local_phones_and_grouped_amounts(
    ada: ConsoleClient, harness: Harness
) -> None:
    """Without a script, a picker's text is submitted instead of the ID that it represents."""
    sender = await harness.create_subscriber(balance="5000", first_name="Aminata")
    recipient = await harness.create_subscriber(phone_number="+23276123456")
    response = await ada.submit_action(
        "wallet.send",
        {
            "sender_id": sender["id"],
            "recipient_phone_number": "076 123456",
            "amount": "1,000.00",
            "pin": PIN,
        },
    )
    assert "HX-Redirect" in response.headers, response.text
    accounts = {"from_account_id": sender["account_id"], "to_account_id": "076 123456"}
    response = await ada.submit_action(
        "wallet.transfer", {**accounts, "amount": "2 000", "pin": PIN}
    )
    assert "HX-Redirect" in response.headers, response.text
    balance = await harness.get(
        f"/api/v1/balance/{recipient['id']}", auth=await harness.create_admin()
    )
    assert balance.json()["balance"] == "3000.00"
    text = await ada.get_page_text("/console/subscribers?search=076123456")
    assert recipient["id"] in text and sender["id"] not in text


async def test_picker_shows_the_chosen_record_and_its_problems(
    ada: ConsoleClient, harness: Harness
) -> None:
    customers = [
        await harness.create_subscriber(first_name="Isata", last_name=name)
        for name in ("Bah", "Barrie")
    ]
    text = (
        await ada.get_partial(f"/console/actions/card.link?subscriber_id={customers[0]['id']}")
    ).text
    assert 'value="Isata Bah"' in text and f'value="{customers[0]["id"]}"' in text
    fields = {"card_serial": "TAP-1", "pin": PIN}
    for name, problem in {
        "isata ba": "More than one customer matches. Select one from the list.",
        "nobody": "No customer matches. Enter a name, phone number or ID.",
    }.items():
        text = (await ada.submit_action("card.link", {**fields, "subscriber_id": name})).text
        assert problem in text and f'value="{name}"' in text and "subscriber_id must" not in text
    chosen = {"subscriber_id": "Isata Bah", "subscriber_id.id": customers[0]["id"]}
    text = (await ada.submit_action("card.link", {**fields, **chosen})).text
    assert "Card not found" in text and f'value="{customers[0]["id"]}"' in text
    options = (
        await ada.get_partial("/console/search/pick?field=x&types=subscriber&x=isata%20ba")
    ).text
    assert options.count('role="option"') == 2 and 'data-label="Isata Barrie"' in options


async def test_errors_name_the_field_in_words(ada: ConsoleClient) -> None:
    text = (await ada.submit_action("api_key.create", {"name": "Store"})).text
    assert "Select at least one scope." in text and "Fix the highlighted fields" in text
    person = {"first_name": "1", "last_name": "K" * 61, "phone_number": "123", "pin": "6417"}
    text = (await ada.submit_action("subscriber.register", person)).text
    assert text.count('aria-invalid="true"') == 3 and "Fix the highlighted fields" in text
    text = (await ada.submit_action("api_key.create", {"scopes": "payments:read"})).text
    assert "Enter a name." in text


async def test_search_page_lists_results_or_opens_the_only_one(
    ada: ConsoleClient, harness: Harness
) -> None:
    people = [
        await harness.create_subscriber_with_old_name("Isata", name)
        for name in ("<b>Bah</b>", "Barrie")
    ]
    text = (await ada.get("/console/search?q=isata")).text
    assert all(f'href="/console/subscribers/{person["id"]}"' in text for person in people)
    assert "Isata &lt;b&gt;Bah&lt;/b&gt;" in text
    response = await ada.get("/console/search?q=isata+barrie")
    assert response.headers["Location"] == f"/console/subscribers/{people[1]['id']}"
    assert "No results" in await ada.get_page_text("/console/search?q=nothing")
    assert "What you can search for" in await ada.get_page_text("/console/search")
    assert "No matches" in (await ada.get_partial("/console/search?q=nothing")).text


async def test_search_page_groups_results_by_kind_and_finds_pages(
    ada: ConsoleClient, harness: Harness
) -> None:
    people = [await harness.create_subscriber(first_name="Support") for _ in range(2)]
    agent = await create_agent(harness, name="Support")
    text = (await ada.get("/console/search?q=support")).text
    tabs = re.findall(r'href="(/console/search\?q=support&amp;type=\w+)"', text)
    assert [tab.rpartition("=")[2] for tab in tabs] == ["subscriber", "agent"]
    assert 'class="button" href="/console/support"' in text
    customers = (await ada.get(html.unescape(tabs[0]))).text
    assert all(f'href="/console/subscribers/{person["id"]}"' in customers for person in people)
    assert f'href="/console/agents/{agent["id"]}"' in text
    assert f'href="/console/agents/{agent["id"]}"' not in customers
    # A kind that found nothing is no filter.
    assert "Support" in await ada.get_page_text("/console/search?q=support&type=card")


async def test_search_page_says_that_more_results_exist(
    ada: ConsoleClient, harness: Harness
) -> None:
    for _ in range(51):
        await harness.create_subscriber(first_name="Isata")
    assert "The first 50 results for “isata”" in await ada.get_page_text("/console/search?q=isata")


async def test_search_results_have_labels_instead_of_api_values(ada: ConsoleClient) -> None:
    admins = (await ada.get_partial("/console/search/pick?field=x&types=admin&x=ada")).text
    assert "System admin" in admins and "system admin" not in admins
    accounts = (await ada.get_partial("/console/search/pick?field=x&types=account&x=platform")).text
    assert "Commission expense" in accounts and "commission expense" not in accounts


async def test_fields_forbidden_to_the_role_are_dropped(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    """The form omits the field for this role, and submitting the field anyway has no effect."""
    person = await harness.create_subscriber()
    support = await console_clients.create_signed_in("S")
    await support.submit_action(
        "subscriber.update", {"first_name": "Mariama", "kyc_level": "3"}, id=person["id"]
    )
    response = await harness.get(
        f"/api/v1/subscribers/{person['id']}", auth=harness.get_service_auth()
    )
    record = msgspec.convert(response.json(), dict[str, object])
    assert (record["first_name"], record["kyc_level"]) == ("Mariama", person["kyc_level"])


async def test_large_form_is_parsed_once_and_off_the_main_thread(
    ada: ConsoleClient, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing a photo takes a long time and must not delay other requests in the process."""
    person, csrf = (await harness.create_subscriber())["id"], await ada.get_csrf_token()
    parsed: list[tuple[int, bool]] = []

    def record_parsing(encoded: bytes) -> FormData:
        parsed.append((len(encoded), threading.current_thread() is threading.main_thread()))
        return FormData(encoded)

    monkeypatch.setattr("tapgate.sites.console.page_request.FormData", record_parsing)
    response = await ada.post_without_csrf(
        f"/console/actions/subscriber.document?id={person}",
        {"document_type": "id_front", "image": "+/" * 1_000_000},
        **{"X-CSRF-Token": csrf},
    )
    assert response.status_code == 200 and "JPEG or PNG" in response.text
    assert [on_main_thread for size, on_main_thread in parsed if size > 1_000_000] == [False]


PATHS = ("/console", "/console/subscribers", "/console/audit", "/console/actions/subscriber.block")
QUERIES = (
    "%", "%zz", "%00", "a=%ff", "search=%ED%A0%80", "cursor=x", "cursor=%F0%9F%98%80", "limit=x",
    "search=%00", "from=yesterday", "&&&===", "id=..%2F..", "id=%7Bid%7D", "id=", "id=x&id=y",
    "x=1&" * 300, "search=" + "x" * 5000, "é", "kyc_level=" + "9" * 4000, "result=%27%22%3E",
)  # fmt: skip


async def test_pages_and_error_responses_have_the_security_headers(
    ada: ConsoleClient, signed_out_client: ConsoleClient
) -> None:
    responses = [
        await ada.get("/console"),
        await ada.get("/console/nowhere"),
        await ada.get("/console/assets/console.js"),
        await ada.get("/console/assets/nowhere.js"),
        await ada.get_partial("/console/subscribers"),
        await ada.client.put("/console"),
        await signed_out_client.get("/console"),
        await signed_out_client.get("/console/sign-in"),
        await signed_out_client.post_without_csrf("/console/sign-in", {"email": "x" * 20_000}),
    ]
    for response in responses:
        for name, value in SECURITY_HEADERS.items():
            if response.request.url.path.startswith("/console/assets/") and response.is_error:
                continue
            assert response.headers[name] == value, f"{response.request.url}: {name}"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


async def test_unknown_path_gets_a_page_with_status_404(
    ada: ConsoleClient, signed_out_client: ConsoleClient
) -> None:
    for console in (ada, signed_out_client):
        for path in ("/console/nowhere", "/console/", "/console//", "/console/subscribers/"):
            response = await console.get(path)
            assert response.status_code == 404 and "<h1>Page not found</h1>" in response.text


async def test_unsupported_method_gets_405_with_an_allow_header(ada: ConsoleClient) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "POST"):
        response = await ada.client.request(method, "/console/subscribers")
        assert response.status_code == 405
        assert response.headers["Allow"] == "GET, HEAD"
        assert response.headers["Content-Type"].startswith("text/html")


async def test_head_response_matches_get_without_a_body(ada: ConsoleClient) -> None:
    for path in ("/console", "/console/subscribers", "/console/nowhere"):
        full, head = await ada.get(path), await ada.client.head(path)
        assert head.status_code == full.status_code and head.content == b""
        assert head.headers["Content-Length"] == full.headers["Content-Length"]


async def test_malformed_query_causes_no_server_error(ada: ConsoleClient) -> None:
    for path, query in itertools.product(PATHS, QUERIES):
        address = f"{path}?{query}".encode("utf-8", "replace").decode("latin-1")
        for response in (await ada.client.get(address), await ada.get_partial(address)):
            assert response.status_code < 500, f"{address}: {response.text}"


UNKNOWN_PATHS = (
    "%", "%zz", "%00", "subscribers/%ff", "subscribers/%2e%2e%2fapi", "subscribers/" + "x" * 3000,
    "subscribers/sub_%F0%9F%98%80", "actions/%3Cscript%3E", "webhooks/x", "webhooks/%00",
    "assets/..%2fconsole.py", "assets/htmx.LICENSE",
)  # fmt: skip


async def test_malformed_path_gets_400_or_404(ada: ConsoleClient) -> None:
    for path in UNKNOWN_PATHS:
        response = await ada.get(f"/console/{path}")
        assert response.status_code in (400, 404), path
        assert "<script>" not in response.text


BODIES = (
    b"\xff\xfe", b"a=%ff", b"a=%zz", b"%", b"=", b"&" * 1000, b"a=1&" * 300, b"{}",
    b"reason=" + b"x" * 500_000, b"reason=%00", b"reason=%ED%A0%80", b"\0" * 100,
)  # fmt: skip
CONTENT_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x")


async def test_malformed_form_causes_no_server_error(
    ada: ConsoleClient, signed_out_client: ConsoleClient
) -> None:
    csrf = await ada.get_csrf_token()
    for body, content_type in itertools.product(BODIES, CONTENT_TYPES):
        headers = {"Content-Type": content_type, "X-CSRF-Token": csrf}
        for console, path in (
            (ada, "/console/actions/subscriber.block?id=sub_x"),
            (signed_out_client, "/console/sign-in"),
        ):
            response = await console.client.post(path, content=body, headers=headers)
            assert response.status_code < 500, response.text


async def test_random_paths_cause_no_server_error(ada: ConsoleClient) -> None:
    rng = random.Random(7)
    for _ in range(150):
        noise = "".join(rng.choices(string.printable.strip() + "%%&&==//??", k=30))
        response = await ada.client.get(f"/console/{noise.replace('#', '')}")
        assert response.status_code < 500, noise


async def test_large_form_is_rejected_with_413_only_when_signed_out(
    signed_out_client: ConsoleClient, ada: ConsoleClient
) -> None:
    large = {"email": "a" * 20_000, "password": "x"}
    response = await signed_out_client.post_without_csrf("/console/sign-in", large)
    assert response.status_code == 413
    assert response.headers["Content-Type"].startswith("text/html")
    partial = await signed_out_client.post_without_csrf(
        "/console/sign-in", large, **{"HX-Request": "true"}
    )
    assert partial.status_code == 413 and "<html" not in partial.text
    response = await ada.post_without_csrf(
        "/console/actions/subscriber.block", {"reason": "x" * 20_000}
    )
    assert response.status_code == 403, "rejected for the missing CSRF token, not for its size"


async def test_rate_limited_request_gets_an_html_page(
    console_clients: ConsoleClients, tmp_path: Path
) -> None:
    services = console_clients.harness.services
    console = await console_clients.create_signed_in("S")
    settings = services.settings.replace(data_dir=tmp_path / "slow", rate_burst=1)
    original_throttle, services.throttle = (
        services.throttle,
        Throttle(settings.replace(rate_limit=1)),
    )
    try:
        response = await console.get("/console")
        while response.status_code == 200:
            response = await console.get("/console")
    finally:
        await services.throttle.close()
        services.throttle = original_throttle
    assert response.status_code == 429 and int(response.headers["Retry-After"]) > 0
    assert response.headers["Content-Type"].startswith("text/html")
    assert "Customers" in response.text, "the page has the navigation"
