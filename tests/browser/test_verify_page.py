"""The page /verify in a browser: a valid proof, a changed one, and accessibility."""

import asyncio
import json
import zlib
from base64 import urlsafe_b64encode
from pathlib import Path

from playwright.async_api import expect

from builders.day_proofs import build_day_proof
from drivers.chromium import Tab


async def test_proof_is_checked_in_the_browser(signed_out_tab: Tab) -> None:
    tab, page = signed_out_tab, signed_out_tab.page
    proof, keys = build_day_proof()
    await tab.open("/verify")
    await page.get_by_role("textbox", name="Proof").fill(json.dumps(proof))
    await page.get_by_role("textbox", name="Public keys").fill(json.dumps({"keys": keys}))
    await page.get_by_role("button", name="Verify").click()
    await expect(page.get_by_text("Valid: txn_1 is part of 2026-03-10")).to_be_visible()
    assert await tab.find_axe_violations() + await tab.find_contrast_violations() == []
    proof["leaf"]["entries"][0]["amount"] = "25.01"
    await page.get_by_role("textbox", name="Proof").fill(json.dumps(proof))
    await page.get_by_role("button", name="Verify").click()
    await expect(page.get_by_text("the transaction is not part of the day")).to_be_visible()


async def test_link_from_the_chat_opens_and_saves_its_proof(signed_out_tab: Tab) -> None:
    tab, page = signed_out_tab, signed_out_tab.page
    proof, keys = build_day_proof()
    packed = urlsafe_b64encode(zlib.compress(json.dumps(proof).encode())).decode().rstrip("=")
    await tab.open(f"/verify#{packed}")
    await expect(page.get_by_text("the keys do not contain the signing key")).to_be_visible()
    await page.get_by_role("textbox", name="Public keys").fill(json.dumps({"keys": keys}))
    await page.get_by_role("button", name="Verify").click()
    await expect(page.get_by_text("Valid: txn_1 is part of 2026-03-10")).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Save the proof").click()
    saved = await (await download.value).path()
    assert json.loads(await asyncio.to_thread(Path(saved).read_bytes)) == proof
    await page.evaluate("location.hash = '#bm90IGEgcHJvb2Y'")
    await expect(page.get_by_text("the link is incomplete")).to_be_visible()
