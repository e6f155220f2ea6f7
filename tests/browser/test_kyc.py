"""KYC review: pictures beside the profile, a decision, and the next customer."""

import base64
import io
import re

import pytest
from PIL import Image, ImageDraw
from playwright.async_api import expect

from drivers.actors import Admin, require_success
from drivers.chromium import DESKTOP_VIEWPORT, PHONE_VIEWPORT, Tab


@pytest.fixture
async def waiting(ada: Admin) -> list[str]:
    """Empty the queue, create two customers who wait for a decision, and return their IDs."""
    for earlier in await ada.list_all("subscribers", kyc_status="PENDING"):
        decision = {"decision": "reject", "reason": "Sample documents"}
        require_success(await ada.post(f"subscribers/{earlier['id']}/kyc-decision", **decision))
    app = await ada.create_app()
    customers = [await app.register_customer(name) for name in ("Kadija Bah", "Foday Conteh")]
    for customer in customers:
        for document_type, size in (("id_front", (860, 540)), ("selfie", (600, 800))):
            await ada.post(
                f"subscribers/{customer.id}/kyc-documents",
                document_type=document_type,
                image=_build_picture(document_type, size),
            )
    return [customer.id for customer in customers]


def _build_picture(text: str, size: tuple[int, int]) -> str:
    picture, file = Image.new("RGB", size, (220, 228, 235)), io.BytesIO()
    ImageDraw.Draw(picture).text((40, 40), text, fill=(20, 30, 45), font_size=48)
    picture.save(file, "JPEG")
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


async def test_officer_reviews_one_customer_after_the_other(
    tab: Tab, ada: Admin, waiting: list[str]
) -> None:
    page = tab.page
    await tab.open("/console/kyc")
    await tab.take_screenshot("kyc-queue")
    await page.get_by_role("link", name="Start review").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Kadija Bah")
    await page.wait_for_load_state()
    for picture in await page.locator(".documents img").all():
        await expect(picture).to_have_js_property("complete", True)
        assert await picture.evaluate("image => image.naturalWidth") > 0
    for name, viewport in (("desktop", DESKTOP_VIEWPORT), ("phone", PHONE_VIEWPORT)):
        await page.set_viewport_size(viewport)
        assert await page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        await tab.take_screenshot(f"kyc-review-{name}")
    await page.set_viewport_size(DESKTOP_VIEWPORT)
    assert await tab.find_axe_violations() == []
    await page.get_by_role("button", name="Approve level 2").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("KYC level")).to_have_value("2")
    await tab.take_screenshot("kyc-approve")
    await dialog.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Foday Conteh")
    await expect(page.get_by_text("KYC level approved.")).to_be_visible()
    await page.get_by_role("button", name="Reject").click()
    await dialog.get_by_label("Reason").fill("The ID has expired.")
    await dialog.get_by_role("button", name="Reject").click()
    await expect(page).to_have_url(re.compile("/console/kyc$"))
    await expect(page.get_by_text("All clear.")).to_be_visible()
    records = [require_success(await ada.get(f"subscribers/{id}")) for id in waiting]
    assert [(record["kyc_level"], record["kyc_status"]) for record in records] == [
        (2, "VERIFIED"),
        (1, "REJECTED"),
    ]
