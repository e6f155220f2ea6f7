"""A running gateway, its command line and the verification of its books."""

import asyncio
import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncpg
import httpx2

from drivers.actors import Admin, App
from drivers.api_caller import require_success
from drivers.clients import open_client_per_process
from drivers.processes import ADMIN, TAPGATE_EXECUTABLE
from harness import ServiceAuth
from tapgate.ledger.verify import verify
from tapgate.settings import Settings, load_settings


class Deployment:
    def __init__(self, client: httpx2.AsyncClient, folder: Path, database_url: str) -> None:
        self.client = client
        self.database_url = database_url
        self._environ = {
            "TAPGATE_DATA_DIR": str(folder / "gateway"),
            "TAPGATE_DATABASE_URL": database_url,
        }

    async def log_in_admin(self) -> Admin:
        """Log in as the first system admin."""
        return await Admin.log_in(self.client, ADMIN["email"], ADMIN["password"])

    @property
    def settings(self) -> Settings:
        """Settings of the gateway's processes, including generated secrets."""
        return load_settings(self._environ)

    def create_messenger_app(self) -> App:
        """Return a caller that authenticates as the messenger."""
        secret = self.settings.service_secrets["messenger"]
        return App(self.client, ServiceAuth("messenger", secret), "messenger")

    def open_client_per_process(self) -> AbstractAsyncContextManager[list[httpx2.AsyncClient]]:
        """Open a client for each of the gateway's processes."""
        return open_client_per_process(self.client.base_url)

    async def run_command(self, *arguments: str) -> tuple[int, str]:
        """Run a `tapgate` command and return its exit status and output."""
        process = await asyncio.create_subprocess_exec(
            TAPGATE_EXECUTABLE,
            *arguments,
            env=os.environ | self._environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()

    async def get_pending_code(self, phone_number: str) -> str:
        """Return the newest pending one-time code for a phone number."""
        _, output = await self.run_command("messages", "--to", phone_number)
        codes = [line for line in output.splitlines() if " one_time_code: " in line]
        assert codes, output
        return codes[0].rpartition(": ")[2]

    async def disable_compliance_rules(self) -> None:
        """Disable all rules, for journeys with more payments per day than the rules allow."""
        ada = await self.log_in_admin()
        for rule in require_success(await ada.get("compliance/rules"))["data"]:
            require_success(await ada.put(f"compliance/rules/{rule['id']}", status="inactive"))

    async def require_balanced_books(self) -> None:
        """Assert the ledger invariants that must hold after every journey."""
        connection = await asyncpg.connect(self.database_url)
        try:
            proof = await verify(connection)
            assert proof.is_valid, proof
            assert await connection.fetchval(_SUM_OF_ALL_ACCOUNTS_SQL) == 0
        finally:
            await connection.close()


#: Uses stored balances where they exist, and entries otherwise.
_SUM_OF_ALL_ACCOUNTS_SQL = """
    SELECT (SELECT coalesce(sum(balance), 0) FROM accounts WHERE checked)
         + (SELECT coalesce(sum(e.amount), 0) FROM entries e
            JOIN accounts a ON a.id = e.credit_account WHERE NOT a.checked)
         - (SELECT coalesce(sum(e.amount), 0) FROM entries e
            JOIN accounts a ON a.id = e.debit_account WHERE NOT a.checked)"""
