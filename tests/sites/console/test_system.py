"""Pages for webhooks, API keys, administrators and the audit log."""

import re
from datetime import timedelta
from urllib.parse import quote

import pytest

from builders.auth import assert_seals
from builders.card_proofs import create_keyset
from builders.payments import PosDriver
from drivers.console import ConsoleClient, ConsoleClients
from drivers.webhooks import attempt_due_deliveries
from harness import BearerAuth, Harness
from tapgate.events.audit.chain import Sealer
from tapgate.runtime.nodes import NodeRegistry
from tapgate.runtime.store import postgres_releases
from tapgate.runtime.store.postgres_programs import read_embedded_version
from tapgate.sites.console.pages.api_keys import SCOPE_DESCRIPTIONS
from tapgate_client import ids
from tapgate_client.schemas.admin import Scope
from tapgate_client.schemas.nodes import NodeRole

_XSS_PAYLOAD = "<script>alert(1)</script>"
_NO_FILTER_ERRORS = '<div id="filter-errors" role="alert"></div>'


def test_every_scope_has_a_description() -> None:
    assert tuple(SCOPE_DESCRIPTIONS) == tuple(Scope)


async def test_nodes_page_shows_status_settings_and_replication(
    ada: ConsoleClient, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "No node has reported yet" in await ada.get_page_text("/console/nodes")
    version = read_embedded_version()
    monkeypatch.setattr(postgres_releases, "NEWEST_MINOR_RELEASES", {version.major: 98})
    text = await ada.get_page_text("/console/nodes")
    assert str(version) in text and f"{version.major}.98 has fixes" in text
    services = harness.services
    await services.nodes.report()
    settings = services.settings.replace(node_id="b", port=8100, jwt_secret=_XSS_PAYLOAD * 2)
    await NodeRegistry(settings, NodeRole.GATEWAY, services.database, services.health).report()
    await services.database.execute("UPDATE nodes SET newest_migration = '0001' WHERE id = 'b'")
    services.health.is_draining = True
    await services.nodes.report()
    text = await ada.get_page_text("/console/nodes")
    assert "Not ready" in text and "Shutting down" in text
    assert "TAPGATE_JWT_SECRET" in text and "No standby is connected." in text
    assert "Newest migration" in text and text.count("Older than the schema") == 1
    assert text.count(":8100") == 1 and _XSS_PAYLOAD not in text


async def test_api_requests_are_listed_filtered_and_shown(
    ada: ConsoleClient, harness: Harness
) -> None:
    assert "No requests yet" in await ada.get_page_text("/console/request-logs")
    key = await harness.create_api_key("cards:read")
    await harness.get("/api/v1/cards/NONE-1", auth=key, headers={"X-Request-ID": "trace-1"})
    await harness.services.request_log.flush()
    found = await ada.get("/console/request-logs?result=failed&status=x")
    assert "GET /api/v1/cards/NONE-1" in found.text and "CARD_NOT_FOUND" in found.text
    assert "Status must be" in found.text
    match = re.search(r"/console/request-logs/log_\w+", found.text)
    assert match is not None
    text = await ada.get_page_text(match[0])
    assert "trace-1" in text and key.id in text and "Card not found" in text
    missing = await ada.get_page_text(f"/console/request-logs?api_key_id={key.id}&method=POST")
    assert "No requests match" in missing
    field = re.search(r'<input id="filter-api_key_id"[^>]* value="([^"]+)"', missing)
    assert field is not None and field[1] != key.id
    named = await ada.get_page_text(f"/console/request-logs?api_key_id={quote(field[1])}")
    assert "GET /api/v1/cards/NONE-1" in named


async def test_api_request_and_its_transaction_link_each_other(
    ada: ConsoleClient, harness: Harness
) -> None:
    pos = await PosDriver.create(harness, balance="300")
    transaction = (await pos.pay("100", request_id="till-1")).json()["transaction_id"]
    await pos.pay("50", request_id="till-2")
    await harness.services.request_log.flush()
    path = f"/console/request-logs?transaction_id={transaction}"
    assert f'href="{path}"' in (await ada.get(f"/console/transactions/{transaction}")).text
    (log,) = set(re.findall(r"/console/request-logs/log_\w+", (await ada.get(path)).text))
    assert f'href="/console/transactions/{transaction}"' in (await ada.get(log)).text


async def test_webhook_delivery_is_shown_with_payload(ada: ConsoleClient, harness: Harness) -> None:
    admin = await harness.create_admin()
    url = "/api/v1/admin/webhook-endpoints"
    body = {"url": "http://127.0.0.1:9/hook", "events": ["*"]}
    hook = (await harness.post(url, json=body, auth=admin)).json()["id"]
    await harness.post(f"{url}/{hook}/test", json={}, auth=admin)
    match = re.search(
        r"/console/webhooks/whk_\w+/deliveries/dlv_\w+",
        (await ada.get(f"/console/webhooks/{hook}")).text,
    )
    assert match is not None
    text = await ada.get_page_text(match[0])
    assert "webhook.test" in text and hook in text and "Resend" in text


async def test_new_api_key_is_shown_once(ada: ConsoleClient) -> None:
    form = {"name": _XSS_PAYLOAD, "scopes": ["cards:read", "balance:read"]}
    created = await ada.submit_action("api_key.create", form | {"expires_at": "2999-01-31T12:00"})
    match = re.search(r'data-copy="(svc_test_[^"]+)"', created.text)
    assert match is not None and _XSS_PAYLOAD not in created.text
    page = await ada.get("/console/api-keys")
    assert match[1] not in page.text and _XSS_PAYLOAD not in page.text
    assert "&lt;script&gt;" in page.text and "Jan 31, 2999, 12:00" in page.text


async def test_rejected_admin_form_does_not_show_the_password(ada: ConsoleClient) -> None:
    form = {"name": "Ben", "email": "no address", "role": "support_user", "password": "hush hush!!"}
    rejected = await ada.submit_action("administrator.create", form)
    assert 'role="alert"' in rejected.text and "Ben" in rejected.text
    assert "hush hush" not in rejected.text


async def test_admins_are_not_offered_an_action_to_disable_their_own_account(
    ada: ConsoleClient, harness: Harness
) -> None:
    ben = await harness.create_admin("A")
    page = (await ada.get("/console/administrators")).text
    offered = re.findall(r"/console/actions/administrator\.disable\?id=(\w+)", page)
    assert offered == [ben.id] and page.count(">you<") == 1


async def test_webhook_page_shows_deliveries_until_the_webhook_is_deleted(
    ada: ConsoleClient, harness: Harness
) -> None:
    created = await ada.submit_action(
        "webhook.create", {"url": "http://127.0.0.1:9/x", "events": ["card.linked"]}
    )
    match = re.search(r"/console/webhooks/(\w+)", created.text)
    assert match is not None and "whsec_" in created.text
    page = f"/console/webhooks/{match[1]}"
    assert "No deliveries yet" in await ada.get_page_text(page)
    sent = await ada.submit_action("webhook.test", id=match[1])
    assert sent.headers["HX-Redirect"] == page
    text = await ada.get_page_text(page)
    assert "Webhook test" in text and ">Now<" in text and "whsec_" not in text
    partial = await ada.get_partial(page)
    assert partial.text.lstrip().startswith("<div") and "load delay:1500ms" in partial.text
    pending = await ada.get_partial(f"{page}?status=pending")
    assert "Webhook test" in pending.text and f"{page}?status=pending" in pending.text
    assert "No deliveries with this status" in await ada.get_page_text(f"{page}?status=failed")
    await harness.database.execute("UPDATE deliveries SET attempts = 2")
    assert "load delay:15s" in (await ada.get_partial(page)).text
    deleted = await ada.submit_action("webhook.delete", id=match[1])
    assert deleted.headers["HX-Redirect"] == "/console/webhooks"
    assert (await ada.get(page)).status_code == 404


async def test_webhook_can_be_edited_paused_and_resumed_and_its_secret_rotated(
    ada: ConsoleClient,
) -> None:
    created = await ada.submit_action(
        "webhook.create", {"url": "http://127.0.0.1:9/x", "events": ["card.linked"]}
    )
    match = re.search(r"/console/webhooks/(\w+)", created.text)
    first = re.search(r'data-copy="(whsec_[^"]+)"', created.text)
    assert match is not None and first is not None
    id, page = match[1], f"/console/webhooks/{match[1]}"
    await ada.get_page_text(page)
    form = (await ada.get_partial(f"/console/actions/webhook.edit?id={id}")).text
    assert 'value="http://127.0.0.1:9/x"' in form and 'value="card.linked" checked' in form
    seen = re.search(r'name="seen" value="(\w+)"', form)
    assert seen is not None
    changes = {"url": "http://127.0.0.1:9/y", "events": ["*"], "seen": seen[1]}
    assert (await ada.submit_action("webhook.edit", changes, id=id)).headers["HX-Redirect"] == page
    text = await ada.get_page_text(page)
    assert "<h1>http://127.0.0.1:9/y</h1>" in text and "All events" in text
    stale = await ada.submit_action("webhook.edit", changes, id=id)
    assert 'role="alert"' in stale.text

    await ada.submit_action("webhook.pause", {"status": "paused"}, id=id)
    await ada.submit_action("webhook.test", id=id)
    paused = await ada.get_page_text(page)
    assert "Paused by an administrator." in paused and "When resumed" in paused
    assert "webhook.resume" in paused and "webhook.pause" not in paused
    assert "load delay" not in (await ada.get_partial(page)).text
    assert "Paused by an administrator" in await ada.get_page_text("/console/webhooks")
    await ada.submit_action("webhook.resume", {"status": "active"}, id=id)
    assert "webhook.pause" in await ada.get_page_text(page)

    rotated = await ada.submit_action("webhook.rotate_secret", {"grace_seconds": "3600"}, id=id)
    second = re.search(r'data-copy="(whsec_[^"]+)"', rotated.text)
    assert second is not None and second[1] != first[1]
    assert "whsec_" not in await ada.get_page_text(page)


async def _create_endpoint_with_delivery(ada: ConsoleClient) -> str:
    """Create an endpoint with a test event, and return its page path."""
    created = await ada.submit_action(
        "webhook.create", {"url": "http://127.0.0.1:9/x", "events": ["*"]}
    )
    match = re.search(r"/console/webhooks/(\w+)", created.text)
    assert match is not None
    await ada.submit_action("webhook.test", id=match[1])
    return match[0]


async def test_failing_endpoint_shows_reasons_and_the_next_attempt(
    ada: ConsoleClient, harness: Harness
) -> None:
    path = await _create_endpoint_with_delivery(ada)
    await attempt_due_deliveries(harness.services)
    await harness.database.execute(
        "UPDATE deliveries SET next_attempt_at = $1",
        harness.services.clock() + timedelta(seconds=325),
    )
    page = await ada.get_page_text(path)
    assert "Failing</span>" in page and "Active</span>" not in page
    assert "Connection refused" in page and "In 5 minutes" in page
    assert "<strong>Connection refused.</strong> The last attempt failed" in page
    delivery = re.search(rf"{path}/deliveries/\w+", page)
    assert delivery is not None
    page = await ada.get_page_text(delivery[0])
    assert "Connection refused</span>" in page and "In 5 minutes" in page


async def test_webhook_response_is_escaped_and_the_disable_reason_is_shown(
    ada: ConsoleClient, harness: Harness
) -> None:
    path = await _create_endpoint_with_delivery(ada)
    database = harness.database
    await database.execute(
        """UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, ended_at = now(),
                  attempts = 1, last_status = 410, duration_ms = 1234, response = $1""",
        _XSS_PAYLOAD,
    )
    await database.execute(
        "UPDATE webhook_endpoints SET status = 'disabled', status_reason = 'It is gone'"
    )
    page = (await ada.get(path)).text
    assert "It is gone." in page and "webhook.resume" in page
    assert _XSS_PAYLOAD not in page and "&lt;script&gt;" in page
    assert "410" in page and "1,234 ms" in page


async def test_audit_log_shows_old_and_new_values_and_escapes_the_reason(
    ada: ConsoleClient, harness: Harness, console_clients: ConsoleClients
) -> None:
    person = await harness.create_subscriber()
    compliance = await console_clients.create_signed_in("C")
    await compliance.submit_action(
        "subscriber.block", {"reason": f"Said {_XSS_PAYLOAD}"}, id=person["id"]
    )
    address = f"/console/audit?resource_id={person['id']}&event=subscriber.blocked"
    response = await compliance.get(address)
    assert "<del>Active</del>" in response.text and "<ins>Blocked</ins>" in response.text
    assert _XSS_PAYLOAD not in response.text
    assert f"/console/subscribers/{person['id']}" in response.text
    name = f"{person['first_name']} {person['last_name']}"
    assert f'<a href="/console/subscribers/{person["id"]}">{name}</a>' in response.text
    partial = await ada.get_partial(address)
    assert partial.text.count("<tr>") == 1
    assert "No entries match" in await ada.get_page_text("/console/audit?event=nothing.such")
    ignored = await ada.get_page_text("/console/audit?from=yesterday")
    assert "From must be" in ignored and "This filter was ignored" in ignored


async def test_audit_log_lists_events_by_name_and_accepts_other_codes(
    ada: ConsoleClient,
) -> None:
    page = await ada.get_page_text("/console/audit?event=card.invented")
    assert '<option value="card.blocked">Card blocked</option>' in page
    assert '<option value="card.invented" selected>Card invented</option>' in page
    assert "No entries match" in page and _NO_FILTER_ERRORS in page


async def test_audit_log_collapses_long_changes(ada: ConsoleClient, harness: Harness) -> None:
    await create_keyset(harness)
    text = await ada.get_page_text("/console/audit?event=keyset.created")
    visible, hidden = text[text.index('<dl class="changes">') :].split("more changes</summary>")
    assert visible.count("<dt>") == 3
    assert hidden[: hidden.index("</details>")].count("<dt>") >= 2


@pytest.mark.parametrize(
    ("path", "rare"),
    [
        ("audit", ["resource_type", "result"]),
        ("request-logs", ["status", "error_code", "request_id", "idempotency_key"]),
        ("transactions", ["flow", "card_serial"]),
    ],
)
async def test_rare_filters_are_behind_a_button_unless_they_are_set(
    ada: ConsoleClient, path: str, rare: list[str]
) -> None:
    text = await ada.get_page_text(f"/console/{path}?status=&result=")
    start = text.index('<details class="more-filters">')
    hidden = text[start : text.index("</details>", start)]
    assert re.findall(r'<(?:select|input)[^>]* name="(\w+)"', hidden) == rare
    for name in rare:
        filtered = await ada.get_page_text(f"/console/{path}?{name}=1")
        assert '<details class="more-filters" open>' in filtered, name


async def test_audit_filters_select_records_by_name_and_accept_other_ids(
    ada: ConsoleClient, harness: Harness, console_clients: ConsoleClients
) -> None:
    person = await harness.create_subscriber(first_name="Zainab", last_name="Turay")
    await ada.submit_action("subscriber.block", {"reason": "Lost phone"}, id=person["id"])
    for query in ("resource_id=zainab", f"resource_id=Zainab&resource_id.id={person['id']}"):
        assert "Lost phone" in await ada.get_page_text(f"/console/audit?{query}")
    await harness.create_admin()
    ambiguous = await ada.get_page_text("/console/audit?actor_id=ada")
    assert "Actor: More than one administrator or key matches" in ambiguous
    shown = await ada.get_page_text("/console/audit?actor_id=messenger&event=nothing.such")
    assert "No entries match" in shown and _NO_FILTER_ERRORS in shown


async def test_audit_verification_reports_pending_sealed_and_altered_entries(
    ada: ConsoleClient, harness: Harness
) -> None:
    database = harness.database
    await harness.create_subscriber()
    unsealed = (await ada.get_partial("/console/audit/verify")).text
    assert "intact." in unsealed and " pending." in unsealed
    await assert_seals(
        Sealer(database), await database.fetchval("SELECT count(*) FROM audit_entries")
    )
    sealed = (await ada.get_partial("/console/audit/verify")).text
    assert "intact. Sealed through" in sealed and "pending" not in sealed
    async with database.transaction() as tx:
        await tx.execute(
            "SET LOCAL session_replication_role = replica"
        )  # bypass the trigger that forbids updates
        await tx.execute("UPDATE audit_entries SET reason = 'another'")
    broken = (await ada.get_partial("/console/audit/verify")).text
    assert "Verification failed at aud_" in broken and "intact" not in broken


async def test_revoke_dialog_names_the_api_key(ada: ConsoleClient, harness: Harness) -> None:
    key = await harness.create_api_key("cards:read")
    page_text = await ada.get_page_text(f"/console/actions/api_key.revoke?id={key.id}")
    assert f"<code>{key.id}</code>" in page_text


async def _create_key(ada: ConsoleClient, **form: object) -> tuple[str, str]:
    """Create an API key and return its ID and secret."""
    created = await ada.submit_action(
        "api_key.create", {"name": "Shop", "scopes": ["cards:read"], **form}
    )
    secret = re.search(r'data-copy="(svc_test_[^"]+)"', created.text)
    page = await ada.get_page_text("/console/api-keys")
    match = re.search(r"/console/actions/api_key\.rotate\?id=(key_\w+)", page)
    assert secret is not None and match is not None
    return match[1], secret[1]


async def test_edit_form_shows_and_changes_the_settings_of_an_api_key(ada: ConsoleClient) -> None:
    form = {
        "allowed_ips": "203.0.113.0/24\n2001:db8::/32",
        "rate_limit": "5",
        "burst": "7",
        "expires_at": "2999-01-31T12:00",
    }
    key, _ = await _create_key(ada, **form)
    page = await ada.get_page_text("/console/api-keys")
    for text in ("203.0.113.0/24", "2001:db8::/32", "5/s burst 7", "Jan 31, 2999, 12:00"):
        assert text in page
    form_text = (await ada.get_partial(f"/console/actions/api_key.edit?id={key}")).text
    for text in (
        'value="2999-01-31T12:00:00.000"',
        'value="5"',
        "203.0.113.0/24\n2001:db8::/32</textarea",
    ):
        assert text in form_text
    seen = form_text.partition('name="seen" value="')[2].partition('"')[0]
    address = f"/console/actions/api_key.edit?id={key}"
    changes = {"name": "Kiosk", "scopes": ["balance:read"], "seen": seen}
    wrong = await ada.post_partial(address, changes | {"allowed_ips": "anywhere"})
    assert 'role="alert"' in wrong.text
    # Empty fields are reset to their defaults.
    response = await ada.post_partial(address, changes)
    assert response.headers["HX-Redirect"] == "/console/api-keys"
    page = await ada.get_page_text("/console/api-keys")
    for text in ("Kiosk", "balance:read", ">Any<", ">Default<"):
        assert text in page
    assert "2999-01-31" not in page
    stale = await ada.post_partial(address, changes | {"name": "Till"})
    assert 'role="alert"' in stale.text
    assert "Till" not in await ada.get_page_text("/console/api-keys")


async def test_expired_api_key_can_be_renamed(ada: ConsoleClient, harness: Harness) -> None:
    key, _ = await _create_key(ada, expires_at="2999-01-31T12:00:42.5")
    await harness.database.execute(
        "UPDATE api_keys SET expires_at = '2020-01-31 12:00:42.5Z' WHERE id = $1",
        ids.decode(ids.KEY, key),
    )
    address = f"/console/actions/api_key.edit?id={key}"
    form = (await ada.get_partial(address)).text
    text = re.search(r'value="(2020-[^"]+)"', form)
    assert text is not None
    changes = {
        "name": "Kiosk",
        "scopes": ["cards:read"],
        "seen": form.partition('name="seen" value="')[2].partition('"')[0],
        "expires_at": text[1],
    }
    response = await ada.post_partial(address, changes)
    assert response.headers.get("HX-Redirect") == "/console/api-keys", response.text
    assert "Kiosk" in await ada.get_page_text("/console/api-keys")


async def test_rotated_api_key_is_shown_once_and_the_old_key_works_in_the_grace_period(
    ada: ConsoleClient, harness: Harness
) -> None:
    key, old = await _create_key(ada)
    rotated = await ada.submit_action("api_key.rotate", {"grace_seconds": "3600"}, id=key)
    match = re.search(r'data-copy="(svc_test_[^"]+)"', rotated.text)
    assert match is not None and match[1] != old
    assert match[1] not in await ada.get_page_text("/console/api-keys")
    for secret in (old, match[1]):
        response = await harness.get("/api/v1/cards", auth=BearerAuth(secret, key))
        assert response.status_code == 200


async def test_disabling_an_administrator_lists_their_api_keys(
    console_clients: ConsoleClients, ada: ConsoleClient, harness: Harness
) -> None:
    ben = await console_clients.create_signed_in("A")
    form = {"name": _XSS_PAYLOAD, "scopes": "cards:read"}
    await ben.submit_action("api_key.create", form)
    key_id, ben_id = await harness.database.fetchrow("SELECT id, created_by FROM api_keys")
    public_id = ids.encode(ids.KEY, key_id)
    disable_path = f"/console/actions/administrator.disable?id={ids.encode(ids.ADMIN, ben_id)}"
    dialog = await ada.get_partial(disable_path)
    assert dialog.status_code == 200 and _XSS_PAYLOAD not in dialog.text
    assert "may have a copy of these secrets" in dialog.text and "Created by" in dialog.text
    for verb in ("rotate", "revoke"):
        assert f"/console/actions/api_key.{verb}?id={public_id}" in dialog.text
    await ada.submit_action("api_key.rotate", {"grace_seconds": "0"}, id=public_id)
    assert "Rotated by" in await ada.get_page_text("/console/api-keys")
    await ada.submit_action("api_key.revoke", id=public_id)
    dialog = await ada.get_partial(disable_path)
    assert "has received no secret that is still valid" in dialog.text


async def test_settings_show_changed_values_first_and_can_be_searched(ada: ConsoleClient) -> None:
    branding = await ada.get_page_text("/console/settings")
    assert "data-brand-preview" in branding and "Changed from the default" not in branding
    text = await ada.get_page_text("/console/settings?tab=configuration")
    assert text.index("Changed from the default") < text.index('class="settings-group"')
    found = await ada.get_page_text("/console/settings?q=rate+limit")
    assert "TAPGATE_<wbr>RATE_<wbr>LIMIT" in found or "TAPGATE_RATE_LIMIT" in found
    assert "Changed from the default" not in found and "TIMEZONE" not in found
    assert "No settings match." in await ada.get_page_text("/console/settings?q=nothing+at+all")


async def test_page_of_an_administrator_shows_sign_in_access_and_sessions(
    ada: ConsoleClient, harness: Harness
) -> None:
    await ada.submit_action(
        "administrator.create", {"name": "Ben", "email": "ben@x.example", "role": "support_user"}
    )
    listed = (await harness.get("/api/v1/admin/users", auth=await harness.create_admin())).json()
    ben = next(admin["id"] for admin in listed["data"] if admin["name"] == "Ben")
    listing = await ada.get_page_text("/console/administrators")
    assert f'href="/console/administrators/{ben}"' in listing
    page = await ada.get_page_text(f"/console/administrators/{ben}")
    assert "Cannot sign in yet." in page and "The link was not used yet." in page
    assert "Not signed in anywhere." in page and "Support: manages customers" in page
    link = await ada.submit_action("administrator.new_link", {}, id=ben)
    assert "/console/invitation#" in link.text
    assert ada.session is not None
    session = BearerAuth(ada.session, "")
    me = (await harness.get("/api/v1/admin/me", auth=session)).json()["id"]
    own = await ada.get_page_text(f"/console/administrators/{me}")
    assert "this session" in own and "My account" in own and "No second factor" in own
    account = await ada.get_page_text("/console/account")
    assert "<strong>No second factor.</strong> Your password alone" in account
    colleague = await harness.create_admin()
    me = (await harness.get("/api/v1/admin/me", auth=colleague)).json()["id"]
    await harness.post("/api/v1/admin/logout", auth=colleague)
    page = await ada.get_page_text(f"/console/administrators/{me}")
    latest, changes = page.split("Changes of the account", maxsplit=1)
    assert "Admin logout" in latest and "Admin logout" not in changes
    assert "administrator.disable" not in own
