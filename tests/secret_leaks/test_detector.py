"""Tests for the leak detector: each kind of secret in each kind of source and encoding."""

import asyncio
import base64
import contextlib
import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import httpx2
import pytest

from cases import each
from drivers.messenger import build_flow_key
from secret_leaks import allowlist, sources
from secret_leaks.capture import TrafficRecorder, record_traffic
from secret_leaks.detector import detect_leaks
from secret_leaks.secrets import SecretSet
from secret_leaks.sources import Source
from tapgate.runtime import quick_start
from tapgate.runtime.store.database import Database
from tapgate.server.child_process import build_command

PASSWORD = 'Tr0ub4dor "&/ß3'
API_KEY = "svc_test_" + "a1B2c3D4e5F6g7H8" * 3
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1fMSJ9.Qm9ndXMtc2lnbmF0dXJlLW9mLXRoZS1jYW5hcnk"
SECRETS = ["4826", "402917", 'Tr0ub4dor "&/33', API_KEY, JWT]

ENCODINGS: dict[str, Any] = {
    "plain": str.encode,
    "in JSON": lambda secret: json.dumps(secret).encode(),
    "in nested JSON": lambda secret: json.dumps(json.dumps({"a": secret})).encode(),
    "in a URL": lambda secret: quote(secret).encode(),
    "in hex": lambda secret: secret.encode().hex().encode(),
    "in base64": lambda secret: base64.b64encode(b"user:" + secret.encode()),
    "in URL-safe base64": lambda secret: base64.urlsafe_b64encode(b"?" + secret.encode()),
    "in UTF-16": lambda secret: secret.encode("utf-16"),
    "reversed": lambda secret: secret[::-1].encode(),
    "in lowercase": lambda secret: secret.lower().encode(),
    "as a Python repr": lambda secret: repr({"a": secret}).encode(),
}


def build_secret_set(secret: str) -> SecretSet:
    secrets = SecretSet()
    secrets.add("a secret", secret)
    return secrets


@each("form", ENCODINGS)
@each("secret", [API_KEY, JWT, "correct horse battery"])
def test_long_secret_is_found_in_any_encoding(secret: str, form: str) -> None:
    found = b"before " + ENCODINGS[form](secret) + b" after"
    assert build_secret_set(secret).find_leaks("here", found)


@each("form", ["plain", "in JSON", "in a URL", "in hex", "in UTF-16"])
def test_password_with_special_characters_is_found(form: str) -> None:
    assert build_secret_set(PASSWORD).find_leaks("here", ENCODINGS[form](PASSWORD))


def test_truncated_secret_is_found() -> None:
    assert build_secret_set(API_KEY).find_leaks("here", f"{API_KEY[:30]}...".encode())
    assert build_secret_set(API_KEY).find_leaks("here", f"...{API_KEY[-30:]}".encode())


def test_public_part_of_a_token_is_not_reported() -> None:
    assert not build_secret_set(JWT).find_leaks("here", JWT.rpartition(".")[0].encode())


def test_single_line_of_a_private_key_is_found() -> None:
    found = build_flow_key()[0].splitlines()[7].encode()
    assert build_secret_set(build_flow_key()[0]).find_leaks("here", found)
    leaks = build_secret_set(build_flow_key()[0]).find_leaks("here", b"-----BEGIN PRIVATE KEY-----")
    assert not leaks


#: The source in which each statement leaves its parameter, in addition to the PostgreSQL log.
PLANTING_STATEMENTS = {
    "INSERT INTO planted VALUES ($1)": "table public.planted",
    "INSERT INTO packed VALUES (convert_to($1, 'UTF8'))": "bytea public.packed.content",
    "INSERT INTO messenger.planted VALUES (jsonb_build_object('a', $1::text))": (
        "table messenger.planted"
    ),
    "SELECT set_config('application_name', $1, false)": "statements",
    "SELECT pg_notify('changes', $1)": "",
    "SELECT 1 / (length($1) - length($1))": "",
}


async def test_secret_in_the_database_is_found(database_url: str) -> None:
    async with sources.log_all_statements(database_url) as log:
        connection = await asyncpg.connect(database_url)
        try:
            await connection.execute("CREATE TABLE planted (text text)")
            await connection.execute("CREATE TABLE packed (content bytea)")
            await connection.execute("CREATE TABLE messenger.planted (content jsonb)")
            for secret in SECRETS:
                written = {}
                for statement in PLANTING_STATEMENTS:
                    start = log.stat().st_size
                    with contextlib.suppress(asyncpg.DivisionByZeroError):
                        await connection.execute(statement, secret)
                    written[statement] = sources.read_log_since(log, start)
                for source in written.values():
                    assert list_leak_sources(build_secret_set(secret), [source]), secret
                searched = await sources.read_database(database_url)
                minimum = set(PLANTING_STATEMENTS.values()) - {""}
                assert list_leak_sources(build_secret_set(secret), searched) >= minimum
            quoted = await connection.fetchval("SELECT quote_literal($1::text)", PASSWORD)
            await connection.execute(f"ALTER TABLE planted ALTER text SET DEFAULT {quoted}")
            leak_sources = list_leak_sources(
                build_secret_set(PASSWORD), await sources.read_database(database_url)
            )
            assert "the schema" in leak_sources
        finally:
            await connection.close()


def list_leak_sources(secrets: SecretSet, searched: list[Source]) -> set[str]:
    return {
        found.source
        for source in searched
        for found in secrets.find_leaks(
            source.name, source.data, digits=source.search_short_secrets
        )
    }


@pytest.mark.parametrize("secret", SECRETS)
def test_secret_in_a_file_is_found(tmp_path: Path, secret: str) -> None:
    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "behind.txt").write_text(f"it is {secret}\n")
    expected = {"file left/behind.txt"}
    assert list_leak_sources(build_secret_set(secret), [*sources.read_files(tmp_path)]) == expected


@pytest.mark.parametrize("name", allowlist.ALLOWED_IN_FILES)
def test_file_with_allowed_secrets_must_be_readable_only_by_its_owner(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(API_KEY)
    (tmp_path / name).chmod(0o640)
    with pytest.raises(AssertionError, match="accessible to other users"):
        list(sources.read_files(tmp_path))
    (tmp_path / name).chmod(0o600)
    assert list(sources.read_files(tmp_path)) == []


async def test_secret_in_a_command_line_or_environment_is_found(tmp_path: Path) -> None:
    """Runs a process that looks like the gateway and has a secret that it does not need."""
    package = tmp_path / "tapgate"
    (package / "runtime").mkdir(parents=True)
    (package / "server").mkdir()
    (package / "__init__.py").touch()  # shadow the real package
    shutil.copy(quick_start.__file__, package / "runtime")
    (package / "server" / "gateway.py").write_text("input(print('here', flush=True))")
    process = await asyncio.create_subprocess_exec(
        *(*build_command("tapgate.server.gateway"), PASSWORD),
        cwd=tmp_path,
        env={"TAPGATE_SECRET_KEY": JWT, "TAPGATE_ADMIN_PASSWORD": API_KEY},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"here\n"
        searched = list(sources.read_processes())
    finally:
        process.kill()
        await process.communicate()
    (source,) = list_leak_sources(build_secret_set(PASSWORD), searched)
    assert source.startswith("command line of")
    expected = {"environment of tapgate.server.gateway"}
    assert list_leak_sources(build_secret_set(API_KEY), searched) == expected
    assert list_leak_sources(build_secret_set(JWT), searched) == set(), "this variable is allowed"


def build_echo_client(**text: str) -> httpx2.AsyncClient:
    """Return a client that always gets the same response body and header."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        status = 422 if "wrong" in request.url.path else 200
        return httpx2.Response(status, json=text, headers={"X-Shown": text.get("header", "")})

    return httpx2.AsyncClient(transport=httpx2.MockTransport(respond), base_url="http://gateway")


def has_leak(recorder: TrafficRecorder) -> bool:
    return bool(recorder.secrets.find_leaks("responses", b"\n".join(recorder.responses)))


@each("field", ["pin", "new_pin", "otp", "password", "refresh_token", "secret"])
@each("text", ["message", "header"])
@each("path", ["/wrong", "/right"])
async def test_secret_echoed_in_a_response_is_found(field: str, text: str, path: str) -> None:
    secret = "4826" if field.endswith("pin") else API_KEY
    with record_traffic() as recorder:
        async with build_echo_client(**{text: f"{secret} is wrong"}) as client:
            await client.post(path, json={"data": [{field: secret}]})
        assert has_leak(recorder)


async def test_credential_echoed_in_a_response_is_found() -> None:
    with record_traffic() as recorder:
        async with build_echo_client(message=API_KEY) as client:
            await client.get("/", headers={"Authorization": f"Bearer {API_KEY}"})
        assert has_leak(recorder)


async def test_secret_may_be_shown_only_once_and_only_by_its_endpoint() -> None:
    async def leaks_after(*paths: str) -> bool:
        with record_traffic() as recorder:
            async with build_echo_client(key=API_KEY) as client:
                for path in paths:
                    await client.post(path, json={})
            return has_leak(recorder)

    assert not await leaks_after("/api/v1/admin/api-keys")
    assert await leaks_after("/api/v1/admin/api-keys", "/api/v1/admin/api-keys")
    assert await leaks_after("/api/v1/admin/users")


async def test_recording_stops_at_the_end_of_the_block() -> None:
    before = httpx2.AsyncClient.send, httpx2.Client.send
    with record_traffic():
        assert httpx2.AsyncClient.send != before[0]
    assert (httpx2.AsyncClient.send, httpx2.Client.send) == before


async def test_secret_in_a_statement_of_a_reused_connection_is_found(database_url: str) -> None:
    database = await Database.connect(database_url)
    await database.fetchval("SELECT 1")
    await database.close()  # keeps the connection for the next pool
    with pytest.raises(AssertionError, match="a secret in PostgreSQL's log"):
        async with detect_leaks(database_url) as detector:
            detector.add_secret("a secret", API_KEY)
            database = await Database.connect(database_url)
            await database.fetchval("SELECT length($1)", API_KEY)
            await database.close()


async def test_detector_fails_when_it_finds_a_secret(database_url: str) -> None:
    with pytest.raises(AssertionError, match="a secret in logs"):
        async with detect_leaks(database_url) as detector:
            detector.add_secret("a secret", API_KEY)
            detector.add_source("logs", f"key={API_KEY}")
    with pytest.raises(AssertionError, match="a new_pin in replies"):
        async with detect_leaks(database_url) as detector:
            detector.add_secret("a new_pin", "4826")
            detector.add_secret("a token", API_KEY)
            detector.add_pin_source("replies", f"{API_KEY} 4826")
