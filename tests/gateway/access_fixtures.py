"""One gateway per test module, with every kind of credential created once."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import msgspec

from drivers.app_transport import AppTransport
from harness import Harness, HmacAuth
from scratch_databases import ScratchDatabases, build_database_url
from tapgate import ids
from tapgate.api.endpoint import ROLES_BY_LETTER, Access, Endpoint
from tapgate.gateway import create_app, open_services
from tapgate.ids import IdGenerator
from tapgate.ledger.rules import insert_defaults
from tapgate.schemas.admin import Scope
from tapgate.settings import load_settings

NO_RATE_LIMITS = {"TAPGATE_RATE_LIMIT": "1000000", "TAPGATE_RATE_BURST": "1000000"}

ALL_SCOPES = "key with all scopes"
ALL_SCOPES_BUT = f"{ALL_SCOPES} but "


class Caller(NamedTuple):
    """A valid credential and its properties."""

    name: str
    auth: Any
    kind: str  # api_key, admin, service, pos, partner
    scopes: frozenset[str] = frozenset()
    role: str = ""

    def is_allowed(self, access: Access) -> bool:
        match self.kind:
            case "api_key":
                return access.scope in self.scopes
            case "admin":
                return self.role in access.roles
            case "service":
                return access.service
        return access.hmac == self.kind

    def get_expected_error(self, access: Access) -> tuple[int, str]:
        """Return the expected status and error code according to the specification.

        The wrong kind of credential, or a missing permission, is 403. A route that accepts only
        client signatures returns 401 for a request without one.
        """
        only_signed = access.hmac and not (access.scope or access.roles or access.service)
        if only_signed and self.kind not in ("pos", "partner"):
            return 401, "UNAUTHORIZED"
        return 403, "FORBIDDEN"

    def get_expected_requirements(self, access: Access) -> list[str]:
        """Return the expected `required` list.

        It names the requirement for the caller's own kind if the route accepts that kind, otherwise
        all accepted credentials.
        """
        roles = sorted(ROLES_BY_LETTER[letter] for letter in access.roles)
        if self.kind == "api_key" and access.scope:
            return [access.scope]
        if self.kind == "admin" and roles:
            return roles
        scope = [access.scope] if access.scope else []
        signature = [f"{access.hmac}_signature"] if access.hmac else []
        service = ["service_signature"] if access.service else []
        return scope + signature + roles + service


class AccessFixtures:
    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.client = harness.client
        self.callers: list[Caller] = []
        self.processor = self.terminal = self.partner = HmacAuth("", "")

    async def create_callers(self) -> None:
        harness = self.harness
        self.processor, self.partner = (
            await harness.create_processor(),
            await harness.create_partner(),
        )
        self.terminal = await create_terminal_key(harness, self.processor)
        keys = {f"key {scope}": {scope} for scope in Scope}
        keys |= {f"{ALL_SCOPES_BUT}{scope}": {*Scope} - {scope} for scope in Scope}
        keys[ALL_SCOPES] = {*Scope}
        self.callers = [
            *[
                Caller(
                    name,
                    await harness.create_api_key(*sorted(scopes)),
                    "api_key",
                    frozenset(scopes),
                )
                for name, scopes in keys.items()
            ],
            *[
                Caller(name, await harness.create_admin(r), "admin", role=r)
                for r, name in ROLES_BY_LETTER.items()
            ],
            *[
                Caller(f"service {name}", harness.get_service_auth(name), "service")
                for name in harness.services.settings.service_secrets
            ],
            Caller("processor", self.processor, "pos"),
            Caller("terminal", self.terminal, "pos"),
            Caller("partner", self.partner, "partner"),
        ]

    def list_callers(self, access: Access) -> list[Caller]:
        """Return the callers that may differ at an endpoint with this access.

        Of the API keys, these are the keys with all scopes, with only the required scope and with
        all scopes but the required one.
        """
        keys = {ALL_SCOPES, f"key {access.scope}", f"{ALL_SCOPES_BUT}{access.scope}"}
        return [
            caller for caller in self.callers if caller.kind != "api_key" or caller.name in keys
        ]

    async def count_denials(self) -> int:
        """Return the number of denials in the audit log."""
        count: int = await self.harness.services.database.fetchval(
            "SELECT count(*) FROM audit_entries WHERE event = 'access.denied'"
        )
        return count

    async def snapshot_tables(self, *excluded: str) -> Mapping[str, Any]:
        """Return the rows of all tables but `excluded`, the audit log, signals and migrations."""
        database = self.harness.services.database
        tables = await database.fetch(
            """SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN
                   ('schema_migrations', 'audit_entries', 'audit_budgets', 'audit_seal', 'signals')
               ORDER BY tablename"""
        )
        return {
            name: await database.fetch(f"SELECT * FROM {name} ORDER BY {name}::text")
            for (name,) in tables
            if name not in excluded
        }


async def create_terminal_key(harness: Harness, processor: HmacAuth) -> HmacAuth:
    """Create a terminal of the processor and return its key."""
    services, terminal_id = harness.services, harness.services.new_id()
    async with services.transaction() as tx:
        owner = await tx.fetchval(
            "SELECT processor_id FROM hmac_keys WHERE id = $1", ids.decode(ids.KEY, processor.id)
        )
        await tx.execute(
            """INSERT INTO terminals (id, processor_id, name, status, created_at)
               VALUES ($1, $2, 'Till', 'active', now())""",
            terminal_id,
            owner,
        )
        keys = services.authenticator.hmac_keys
        key = await keys.create(tx, processor_id=owner, terminal_id=terminal_id)
    return HmacAuth(ids.encode(ids.KEY, key.id), key.secret)


@contextlib.asynccontextmanager
async def run_access_fixtures(
    folder: Path, postgres: str, copies: ScratchDatabases
) -> AsyncIterator[AccessFixtures]:
    name = await copies.acquire()
    url = build_database_url(name, postgres)
    settings = load_settings(
        {"TAPGATE_DATA_DIR": str(folder), "TAPGATE_DATABASE_URL": url, **NO_RATE_LIMITS}
    )
    try:
        async with open_services(settings, url) as services:
            async with services.transaction() as tx:
                await insert_defaults(tx, settings.currency, IdGenerator(1023))
            transport = AppTransport(create_app(services))
            async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
                access_fixtures = AccessFixtures(Harness(services, client))
                await access_fixtures.create_callers()
                yield access_fixtures
    finally:
        await copies.release(name)


def build_missing_path(endpoint: Endpoint) -> str:
    """Return a path of the endpoint that refers to an object that does not exist."""
    return "/".join("1" if part.startswith("{") else part for part in endpoint.path.split("/"))


def get_status_and_code(response: httpx2.Response) -> tuple[int, str | None]:
    if response.status_code < 400 or not response.content:
        return response.status_code, None
    return response.status_code, msgspec.json.decode(response.content).get("code")
