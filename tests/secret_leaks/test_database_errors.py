"""Database failures during requests with secrets: no log or response contains the secrets."""

import httpx2
import pytest

from builders.http_apps import LogCapture
from harness import PIN, Harness
from secret_leaks.detector import LeakDetector
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.migrate import migrate

PASSWORD = "parrot-Tr0ub4dor-cage"

#: Statement failures: an error that quotes the whole row, and a lost connection.
FAILURE_SQL = {
    "error": "RAISE EXCEPTION 'no % in %', NEW, TG_TABLE_NAME USING DETAIL = NEW::text",
    "end": "PERFORM pg_terminate_backend(pg_backend_pid())",
}


async def make_writes_fail(database: Database, failure: str) -> None:
    """Make every later insert and update fail."""
    await database.execute(
        f"""CREATE FUNCTION failing() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN {FAILURE_SQL[failure]}; RETURN NEW; END $$"""
    )
    await database.execute(
        """DO $$
           DECLARE one record;
           BEGIN
               FOR one IN SELECT relname FROM pg_class
                          WHERE relnamespace = 'public'::regnamespace
                            AND relkind IN ('r', 'p') AND NOT relispartition LOOP
                   EXECUTE format('CREATE TRIGGER failing BEFORE INSERT OR UPDATE ON %I
                                   FOR EACH ROW EXECUTE FUNCTION failing()', one.relname);
               END LOOP;
           END $$"""
    )


@pytest.mark.parametrize("failure", FAILURE_SQL)
async def test_failed_write_does_not_leak_secrets(
    client: httpx2.AsyncClient,
    harness: Harness,
    leak_detector: LeakDetector,
    log_capture: LogCapture,
    failure: str,
) -> None:
    subscriber = await harness.create_subscriber(balance="50.00")
    serial = await harness.create_card((await harness.create_subscriber())["id"])
    admin, service, terminal_auth = (
        await harness.create_admin(),
        harness.get_service_auth(),
        await harness.create_processor(),
    )
    await client.post(f"/api/v1/subscribers/{subscriber['id']}/reset-pin", auth=service)
    code = await harness.get_pending_code(subscriber["phone_number"])
    await make_writes_fail(harness.services.database, failure)

    registration = {"phone_number": harness.new_phone_number(), "pin": PIN}
    person = {**registration, "first_name": "A", "last_name": "B"}
    ada = {"email": "new@example.com", "password": PASSWORD, "name": "N", "role": "support_user"}
    agent = {**registration, "agent_type": "super_agent", "name": "Foday"}
    item = f"/api/v1/subscribers/{subscriber['id']}"
    send = {"sender_id": subscriber["id"], "recipient_card_serial": serial, "amount": "5.00"}
    pay = {"request_id": "a1", "card_serial": serial, "amount": "5.00", "pin": PIN}
    statement = {"subscriber_id": subscriber["id"], "format": "csv", "pin": PIN}
    statement |= {"from_date": "2026-01-01", "to_date": "2026-01-31"}
    hook = {"url": "http://127.0.0.1:9/hook", "events": ["card.blocked"]}
    processor = {
        "name": "S",
        "phone_number": harness.new_phone_number(),
        "email": "shop@example.com",
    }
    scopes = {"name": "App", "scopes": ["balance:read"]}
    for url, body, auth in (
        ("/api/v1/subscribers", person, service),
        (f"{item}/verify-pin", {"pin": "8264"}, service),
        (f"{item}/change-pin", {"old_pin": PIN, "new_pin": "8264"}, service),
        (f"{item}/reset-pin/confirm", {"otp": code, "new_pin": "8264"}, service),
        ("/api/v1/wallet/transfer-p2p", {**send, "pin": PIN}, service),
        ("/api/v1/wallet/account-statement", statement, service),
        ("/api/v1/pos/payment", pay, terminal_auth),
        ("/api/v1/agents", agent, admin),
        ("/api/v1/admin/users", ada, admin),
        ("/api/v1/admin/login", {"email": "ada@example.com", "password": PASSWORD}, None),
        ("/api/v1/admin/api-keys", scopes, admin),
        ("/api/v1/admin/partners", {"name": "Bank"}, admin),
        ("/api/v1/admin/webhook-endpoints", hook, admin),
        ("/api/v1/processors", processor, admin),
    ):
        response = await client.post(url, json=body, auth=auth)
        assert response.status_code >= 500, (url, response.text)
    if failure == "error":
        assert "asyncpg.exceptions.RaiseError" in log_capture.text
    leak_detector.add_source("logs", log_capture.text)


async def test_database_connection_error_does_not_reveal_the_password() -> None:
    for rest in ("127.0.0.1:1/x", "[::1/x", "host.invalid:99999/x", "127.0.0.1:1/x?sslmode=wrong"):
        with pytest.raises(StoreError) as raised:
            await migrate(f"postgresql://ada:{PASSWORD}@{rest}")
        assert PASSWORD not in str(raised.value)
