"""`tapgate rekey`: output, exit status, and a kill during the run."""

import asyncio
import subprocess

from cli.rekey.conftest import AFTER, BEFORE, SWITCHED, OpenGateway
from drivers.processes import TAPGATE_EXECUTABLE, build_environ, run_command_on
from harness import Harness
from tapgate.core.vault import Vault

OLD_KEY = Vault(BEFORE).key_id


async def run_rekey(harness: Harness, secret_key: str, *options: str) -> tuple[int, str]:
    result = await run_command_on(
        harness.services, "rekey", *options, TAPGATE_SECRET_KEY=secret_key
    )
    return result.returncode, result.stdout + result.stderr


async def test_check_lists_what_needs_an_old_key(open_gateway: OpenGateway) -> None:
    async with open_gateway(BEFORE) as harness:
        await harness.create_subscriber()
        await harness.create_processor()
        assert await run_rekey(harness, SWITCHED, "--check") == (
            1,
            f"Key 0 ({OLD_KEY}) is needed for:\n"
            "  1 signing keys: run `tapgate rekey`\n"
            "  1 PINs: move at the next correct PIN\n",
        )


async def test_old_key_can_be_removed_after_discarding(open_gateway: OpenGateway) -> None:
    async with open_gateway(BEFORE) as harness:
        await harness.create_subscriber()
        await harness.create_processor()
        assert await run_rekey(harness, SWITCHED, "--discard", "--yes") == (
            0,
            "Moved 1 sealed values to the newest key.\n"
            "Invalidated 1 PINs.\n"
            f"Key 0 ({OLD_KEY}) can be removed from TAPGATE_SECRET_KEY.\n",
        )
        done = (0, "All data uses the newest key.\n")
        assert await run_rekey(harness, AFTER, "--check") == done
        repeated = await run_rekey(harness, AFTER)
        assert repeated == (0, f"Moved 0 sealed values to the newest key.\n{done[1]}")
        status, error = await run_rekey(harness, BEFORE, "--check")
        assert status == 1
        assert "does not match this database's key" in error


async def test_killed_run_is_continued(open_gateway: OpenGateway) -> None:
    async with open_gateway(BEFORE) as harness:
        await harness.create_processor()
        await harness.create_partner()
        settings = harness.services.settings
        process = await asyncio.create_subprocess_exec(
            TAPGATE_EXECUTABLE,
            *("rekey", "--pause", "60"),
            env=build_environ(
                settings.data_dir,
                TAPGATE_DATABASE_URL=str(settings.database_url),
                TAPGATE_SECRET_KEY=SWITCHED,
            ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        new_key = bytes.fromhex(Vault(AFTER).key_id)
        moved = "SELECT count(*) FROM hmac_keys WHERE substring(secret FROM 1 FOR 4) = $1"
        while not await harness.database.fetchval(moved, new_key):
            assert process.returncode is None
            await asyncio.sleep(0.05)
        process.kill()
        await process.wait()
        sealed = await harness.database.fetchval("SELECT webhook_secret FROM partners")
        assert sealed[:4] != new_key
        status, output = await run_rekey(harness, SWITCHED)
        assert output.endswith(f"Key 0 ({OLD_KEY}) can be removed from TAPGATE_SECRET_KEY.\n")
        assert status == 0
