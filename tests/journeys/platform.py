"""The platform that a journey takes place on: a started gateway, its commands, and its books."""

import asyncio
import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncpg
import httpx2

from gateway.running import ADMIN, TAPGATE
from journeys.caller import done
from journeys.lines import to_each_process
from journeys.people import App
from journeys.staff import Admin
from tapgate.settings import Settings, load_settings
from world import ServiceSignature


class Platform:
    def __init__(self, client: httpx2.AsyncClient, folder: Path, database_url: str) -> None:
        self.client = client
        self.database_url = database_url
        self._environ = {
            "TAPGATE_DATA_DIR": str(folder / "gateway"),
            "TAPGATE_DATABASE_URL": database_url,
        }

    async def ada(self) -> Admin:
        """The first system_admin, logged in."""
        return await Admin.logged_in(self.client, ADMIN["email"], ADMIN["password"])

    @property
    def settings(self) -> Settings:
        """As the gateway's processes have them, with what was made for them."""
        return load_settings(self._environ)

    def messenger(self) -> App:
        """The messenger, which works for the subscribers themselves."""
        secret = self.settings.service_secrets["messenger"]
        return App(self.client, ServiceSignature("messenger", secret), "messenger")

    def lines(self) -> AbstractAsyncContextManager[list[httpx2.AsyncClient]]:
        """A client for each of the gateway's processes."""
        return to_each_process(self.client.base_url)

    async def command(self, *words: str) -> tuple[int, str]:
        """What an operator types after `tapgate`: how it ended, and what it said."""
        process = await asyncio.create_subprocess_exec(
            TAPGATE,
            *words,
            env=os.environ | self._environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, said.decode()

    async def code_on_the_phone(self, phone_number: str) -> str:
        """The newest one-time code that waits for a phone."""
        _, said = await self.command("messages", "--to", phone_number)
        codes = [line for line in said.splitlines() if " one_time_code: " in line]
        assert codes, said
        return codes[0].rpartition(": ")[2]

    async def switch_rules_off(self) -> None:
        """For a journey of more payments in a day than the rules let through."""
        ada = await self.ada()
        for rule in done(await ada.get("compliance/rules"))["data"]:
            done(await ada.put(f"compliance/rules/{rule['id']}", status="inactive"))

    async def require_sound_books(self) -> None:
        """What must be true after every journey, whatever happened in it."""
        status, said = await self.command("verify")
        assert status == 0, said
        assert "BROKEN" not in said
        connection = await asyncpg.connect(self.database_url)
        try:
            assert await connection.fetchval(_SUM_OVER_ALL_ACCOUNTS) == 0
        finally:
            await connection.close()


#: By the balances where they are kept, by the entries where they are not.
_SUM_OVER_ALL_ACCOUNTS = """
    SELECT (SELECT coalesce(sum(balance), 0) FROM accounts WHERE checked)
         + (SELECT coalesce(sum(e.amount), 0) FROM entries e
            JOIN accounts a ON a.id = e.credit_account WHERE NOT a.checked)
         - (SELECT coalesce(sum(e.amount), 0) FROM entries e
            JOIN accounts a ON a.id = e.debit_account WHERE NOT a.checked)"""
