"""Commands about verification, archives, keys and signatures, run in the test process."""

import os
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from drivers.processes import run_command_on
from harness import BearerAuth, Harness
from tapgate.http.api.services import Services
from tapgate.ledger.maintenance import ensure_partitions


async def run_tapgate(services: Services, *arguments: str) -> tuple[int, str, str]:
    """Run a command on the test's installation and return its status, output and errors."""
    result = await run_command_on(services, *arguments, COLUMNS="120")
    return result.returncode, result.stdout, result.stderr


async def test_verify_confirms_a_consistent_ledger_and_records_the_result(
    services: Services, harness: Harness
) -> None:
    await harness.create_subscriber(balance="100.00")
    status, output, _ = await run_tapgate(services, "verify")
    assert status == 0
    assert output.startswith("1 transactions, 1 entries, 6 accounts\n")
    assert "FAILED" not in output
    recorded = await services.database.fetchrow("SELECT transactions, broken FROM proofs")
    assert recorded is not None
    assert tuple(recorded) == (1, [])


async def test_verify_works_on_a_read_only_database(services: Services, harness: Harness) -> None:
    name = await services.database.fetchval("SELECT current_database()")
    await services.database.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    status, output, _ = await run_tapgate(services, "verify")
    assert (status, output.splitlines()[-1]) == (
        0,
        "Result not recorded: the database or its user is read-only.",
    )


async def test_verify_names_the_broken_invariant(services: Services, harness: Harness) -> None:
    await harness.create_subscriber(balance="100.00")
    await services.database.execute("UPDATE accounts SET balance = 5 WHERE kind = 'wallet'")
    status, output, _ = await run_tapgate(services, "verify")
    assert status == 1
    assert "FAILED every balance is the sum of its entries\n      acc_" in output
    assert "balance 5, entries 10000" in output
    broken = await services.database.fetchval("SELECT broken FROM proofs")
    assert broken == ["every balance is the sum of its entries"]


async def test_api_keys_are_created_listed_and_deleted(
    services: Services, harness: Harness, client: httpx2.AsyncClient
) -> None:
    await harness.create_admin()
    create_command = ("keys", "create", "--name", "Shop", "--scope", "subscribers:read")
    status, key, error = await run_tapgate(services, *create_command)
    assert (status, error) == (0, "")
    auth = BearerAuth(key.strip(), "")
    assert (await client.get("/api/v1/subscribers", auth=auth)).status_code == 200
    _, listed, _ = await run_tapgate(services, "keys", "list")
    assert key.strip() not in listed
    key_id = next(word for word in listed.split() if word.startswith("key_"))
    assert (await run_tapgate(services, "keys", "delete", key_id))[:2] == (0, "Deleted.\n")
    assert (await client.get("/api/v1/subscribers", auth=auth)).status_code == 401
    events = await harness.list_audit_entries(key_id, "api_key.created")
    assert events[0]["actor"]["type"] == "system"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("keys", "create", "--name", "Shop", "--scope", "payments:all"),
            "tapgate: scopes[0] must be one of payments:read,",
        ),
        (("keys", "delete", "key_0000000000000"), "tapgate: "),
        (("keys", "delete", "shop"), "tapgate: KEY_ID must be an ID"),
    ],
)
async def test_invalid_keys_argument_is_reported_in_one_line(
    services: Services, harness: Harness, arguments: tuple[str, ...], error: str
) -> None:
    await harness.create_admin()
    status, output, text = await run_tapgate(services, *arguments)
    assert (status, output) == (1, "")
    assert text.startswith(error)
    assert text.count("\n") == 1


def parse_curl_headers(output: str) -> dict[str, str]:
    """Return the headers of curl's `-H` options."""
    options = output.split()
    assert set(options[::2]) == {"-H"}
    return dict(header.split(":", 1) for header in options[1::2])  # type: ignore[misc]


async def test_signed_service_request_is_accepted_only_for_its_own_query(
    services: Services, client: httpx2.AsyncClient
) -> None:
    path = "/api/v1/subscribers?limit=1"
    _, output, _ = await run_tapgate(services, "sign", "service", "GET", path)
    assert (await client.get(path, headers=parse_curl_headers(output))).status_code == 200
    other = await client.get("/api/v1/subscribers?limit=2", headers=parse_curl_headers(output))
    assert other.status_code == 401


@pytest.mark.parametrize("kind", ["pos", "partner"])
async def test_request_signed_for_pos_or_partner_is_authenticated(
    services: Services, harness: Harness, client: httpx2.AsyncClient, kind: str
) -> None:
    signer = await (harness.create_processor() if kind == "pos" else harness.create_partner())
    partner_options = () if signer.partner_id is None else ("--partner-id", signer.partner_id)
    _, output, _ = await run_tapgate(
        services,
        *("sign", kind, "GET", "/api/v1/subscribers", "--key-id", signer.id),
        *("--secret", signer.secret, *partner_options),
    )
    response = await client.get("/api/v1/subscribers", headers=parse_curl_headers(output))
    assert response.json()["code"] == "FORBIDDEN"  # authenticated, but without permission


async def test_body_from_a_file_is_signed_like_the_same_text(
    services: Services, tmp_path: Path
) -> None:
    body = tmp_path / "body.json"
    body.write_text('{"amount": "5.00"}')
    sign = ("sign", "pos", "POST", "/x", "--key-id", "key_1", "--secret", "s")
    fixed = (*sign, "--timestamp", "2026-01-31T12:00:00Z")
    _, from_file, _ = await run_tapgate(services, *fixed, "-d", f"@{body}")
    _, as_text, _ = await run_tapgate(services, *fixed, "-d", body.read_text())
    assert from_file == as_text
    status, _, error = await run_tapgate(services, *fixed, "-d", "@nowhere.json")
    assert status == 2
    assert "nowhere.json: No such file or directory" in error


async def test_archive_moves_old_months_to_files(
    services: Services, harness: Harness, tmp_path: Path
) -> None:
    await ensure_partitions(services.database, services.clock() - timedelta(days=200))
    await harness.create_subscriber(balance="100.00")
    command = ("archive", "--to", str(tmp_path), "--keep", "3")
    status, _, error = await run_tapgate(services, *command)
    assert (status, error.endswith("is not verified. Run `tapgate verify` first\n")) == (1, True)
    await run_tapgate(services, "verify")
    status, output, error = await run_tapgate(services, *command)
    assert (status, error) == (0, "")
    months = [line.partition(":")[0] for line in output.splitlines()][::2]
    assert len(months) >= 2
    assert {*os.listdir(tmp_path)} >= {  # noqa: PTH208
        f"{months[0]}.json",
        f"entries_{months[0]}.csv.gz.sealed",
        f"transactions_{months[0]}.csv.gz.sealed",
    }
    path = tmp_path / f"entries_{months[0]}.csv.gz.sealed"
    _, output, _ = await run_tapgate(services, "archive", "--read", str(path))
    assert output.startswith("transaction_id,position,")
    _, output, _ = await run_tapgate(services, "archive", "--list")
    assert output.count("exported, tables kept") == len(months)
    # A backup does not contain these tables.
    await services.database.execute(f"DROP TABLE archive.entries_{months[0]}")
    _, output, _ = await run_tapgate(services, "archive", "--list")
    assert output.count("exported, tables not in this database") == 1
    await run_tapgate(services, *command, "--drop")
    _, output, _ = await run_tapgate(services, "archive", "--list")
    assert [line.split()[0] for line in output.splitlines()[1:]] == months
    assert output.count("exported, tables dropped") == len(months)
    rows = await services.database.fetch(
        "SELECT event, actor, reason FROM audit_entries WHERE event LIKE 'ledger.%' ORDER BY id"
    )
    assert [row["reason"] for row in rows if row["event"] == "ledger.archived"] == months
    assert all(row["actor"]["id"].startswith("command line:") for row in rows)
    assert (await run_tapgate(services, "verify", "--all"))[0] == 0
    _, output, _ = await run_tapgate(services, "archive", "--restore", str(tmp_path))
    assert output == f"{months[-1]}: restored\n"
    assert (await run_tapgate(services, "archive"))[2].startswith("tapgate: name a folder")


async def test_sessions_of_one_or_all_admins_are_ended_on_the_server(
    services: Services, harness: Harness, client: httpx2.AsyncClient
) -> None:
    admins = [await harness.create_admin() for _ in range(3)]

    async def list_statuses() -> list[int]:
        return [(await client.get("/api/v1/admin/me", auth=one)).status_code for one in admins]

    rows = await services.database.fetch("SELECT email FROM admins ORDER BY id")
    status, output, _ = await run_tapgate(services, "admin", "end-sessions", rows[0]["email"])
    assert (status, output) == (0, "Ended the sessions of 1 admins.\n")
    assert await list_statuses() == [401, 200, 200]
    status, output, _ = await run_tapgate(services, "admin", "end-sessions", "--all")
    assert (status, output) == (0, "Ended the sessions of 2 admins.\n")
    assert await list_statuses() == [401] * 3
    ended = "SELECT count(*) FROM audit_entries WHERE event = 'admin.session_ended'"
    assert await services.database.fetchval(ended) == 3
    for arguments in ([], ["x@example.com"], ["--all", rows[0]["email"]]):
        assert (await run_tapgate(services, "admin", "end-sessions", *arguments))[0] == 1


async def test_password_and_factors_of_an_admin_are_reset_on_the_server(
    services: Services, harness: Harness, client: httpx2.AsyncClient
) -> None:
    admin = await harness.create_admin()
    email = await services.database.fetchval("SELECT email FROM admins")
    status, output, _ = await run_tapgate(services, "admin", "reset-password", email, "--factors")
    assert status == 0
    body = {"token": output.strip().partition("#")[2], "password": "correct horse battery"}
    accepted = await client.post("/api/v1/admin/invitations/accept", json=body)
    assert accepted.status_code == 204
    assert (await client.get("/api/v1/admin/me", auth=admin)).status_code == 401
    status, _, errors = await run_tapgate(services, "admin", "reset-password", "x@example.com")
    assert (status, "no admin" in errors) == (1, True)
