"""A finance officer's whole day, in the order of the page Finance."""

import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from builders.bank_statements import build_camt, build_camt_entry
from databases import ScratchDatabases, build_database_url
from drivers import chromium
from drivers.actors import Admin, require_success
from drivers.chromium import Tab
from drivers.deployments import Deployment
from drivers.processes import ADMIN, open_client, start_tapgate
from tapgate_sandbox.clock import FILE_NAME

pytestmark = [pytest.mark.proof]

_DAY_SECONDS = 86_400
_WIDE = {"width": 1280, "height": 900}


@pytest.fixture
async def office(
    browser: Browser, postgres: str, scratch_databases: ScratchDatabases
) -> AsyncIterator[tuple[Deployment, Tab]]:
    """Yield the demo on the morning after its last day, which nobody has closed yet."""
    name = await scratch_databases.acquire()
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as temporary_folder:
        folder, url = Path(temporary_folder), build_database_url(name, postgres)
        offset = folder / "gateway" / FILE_NAME
        offset.parent.mkdir(parents=True)
        offset.write_text("0")
        variables = {"TAPGATE_BANK_ACCOUNT_COOLDOWN": "0", "TAPGATE_DAY_CLOSE": "manual"}
        async with (
            start_tapgate(folder, url, workers=1, demo="small", variables=variables) as running,
            open_client(running.address) as client,
        ):
            offset.write_text(str(_DAY_SECONDS))
            deployment = Deployment(client, folder, url)
            async with chromium.open_tab(browser, running.address, _WIDE) as tab:
                await tab.sign_in_by_request(ADMIN["email"], ADMIN["password"])
                yield deployment, tab
            await deployment.require_balanced_books()
    await scratch_databases.release(name)


async def submit(page: Page, button: str, *, result: str) -> None:
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name=button, exact=True).last.click()
    await expect(dialog).to_be_hidden()
    await expect(page.get_by_role("status").first).to_contain_text(result)


async def list_payouts(ada: Admin, status: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = require_success(await ada.get("payouts", status=status))["data"]
    return found


async def fund_two_agents(ada: Admin, amount: str) -> None:
    """Record two deposits of the same amount, between which no match is guessed."""
    for agent in require_success(await ada.get("agents", limit=2))["data"]:
        require_success(await ada.post(f"agents/{agent['id']}/fund", amount=amount))


async def build_statement(ada: Admin) -> bytes:
    """Return what the bank booked: a payout, a deposit, and the cash that the ledger expects."""
    report = require_success(await ada.get("reports/safeguarding"))
    (submitted,) = await list_payouts(ada, "submitted")
    day = report["day"]
    account = "003001098765432"
    closing = float(report["ledger_cash"]) - float(submitted["amount"])
    entries = [
        build_camt_entry(f"-{submitted['amount']}", day, submitted["reference"]),
        build_camt_entry("437.50", day, "CASH DEPOSIT"),
    ]
    statement = build_camt("\n".join(entries), account=account, closing=(f"{closing:.2f}", day))
    other = f"<Othr><Id>{account}</Id></Othr>"
    return statement.replace(f"<IBAN>{account}</IBAN>", other).encode()


async def test_day_is_played_from_its_close_to_the_safeguarding_report(
    office: tuple[Deployment, Tab], tmp_path: Path
) -> None:
    deployment, tab = office
    page, ada = tab.page, await deployment.log_in_admin()
    await fund_two_agents(ada, "437.50")
    answers = page.get_by_role("list", name="Status")

    await tab.open("/console/finance")
    await expect(answers).to_contain_text("Yesterday is open")
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("readme/finance-day")
    await page.get_by_role("button", name="Close day").click()
    await submit(page, "Close day", result="Day closed.")
    await expect(answers).to_contain_text("Yesterday is closed")

    # The fee that the demo's bank has charged.
    fee = page.get_by_role("row").filter(has_text="FEE")
    await fee.get_by_role("button", name="Post to suspense").click()
    await page.get_by_role("dialog").get_by_label("Reason").fill("Monthly fee of the bank")
    await submit(page, "Post to suspense", result="Line posted.")

    await page.get_by_role("link", name="Import statement").click()
    file = tmp_path / "statement.xml"
    file.write_bytes(await build_statement(ada))
    await page.get_by_label("Bank statement").set_input_files(file)
    await page.get_by_role("button", name="Import").click()
    result = page.locator("#result")
    await expect(result).to_contain_text("Statement imported")
    await expect(result.locator("dd")).to_have_text(["2", "1", "1", "0"])
    await tab.take_screenshot("readme/finance-import")
    assert await list_payouts(ada, "submitted") == []

    await tab.open("/console/finance")
    await page.get_by_role("button", name="Match", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Match", exact=True)).to_have_count(2)
    await tab.take_screenshot("readme/finance-match", within="#dialog")
    await dialog.get_by_role("button", name="Match", exact=True).first.click()
    await submit(page, "Match", result="Line matched.")
    await expect(answers).to_contain_text("Nobody is missing money")

    (requested,) = await list_payouts(ada, "requested")
    await page.get_by_role("button", name="Run payouts").click()
    await submit(page, "Run payouts", result="Payouts submitted.")
    await tab.take_screenshot("finance-run")
    await tab.open("/console/finance")
    async with page.expect_download() as waiting:
        await page.get_by_role("link", name="Bank file").click()
    bank_file = (await (await waiting.value).path()).read_text()
    assert f"<EndToEndId>{requested['reference']}</EndToEndId>" in bank_file

    row = page.get_by_role("row").filter(has_text=requested["reference"])
    await row.get_by_role("button", name="Mark as returned").click()
    await page.get_by_role("dialog").get_by_label("Reason").fill("Account closed")
    await submit(page, "Mark as returned", result="Payout returned.")

    await expect(answers).to_contain_text("The bank agrees")
    await tab.take_screenshot("readme/finance-done")
    async with page.expect_download() as waiting:
        await page.get_by_role("button", name="Download").click()
    assert re.search(r"safeguarding.*\.pdf$", (await waiting.value).suggested_filename)
