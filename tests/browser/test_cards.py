"""Cards: uploading a file with errors, and a lost card."""

from pathlib import Path

from playwright.async_api import expect

from drivers.actors import Admin, sequence
from drivers.chromium import Tab, download_csv

_RECORD_PROGRESS_BAR = """() => {
  window.barVisibility = [];
  const bar = document.querySelector("progress[data-upload]");
  const record = () => window.barVisibility.push(!bar.hidden);
  new MutationObserver(record).observe(bar, { attributes: true });
}"""


async def test_card_upload_reports_progress_created_cards_and_row_errors(
    tab: Tab, ada: Admin, tmp_path: Path
) -> None:
    page, prefix = tab.page, f"BR{next(sequence)}"
    good = "".join(f"{prefix}-{number},\n" for number in range(1, 41))
    file = tmp_path / "cards.csv"
    file.write_text(f"Serial No.,MAC Address\n{good}{prefix}-41,nonsense\nnot a serial,\n")
    await tab.open("/console/cards")
    await page.get_by_role("link", name="Upload cards").click()
    await page.wait_for_url("**/console/cards/upload")
    assert await tab.find_axe_violations() == []
    await page.evaluate(_RECORD_PROGRESS_BAR)
    await page.get_by_label("CSV file").set_input_files(file)
    await page.get_by_role("button", name="Upload").click()
    await expect(page.get_by_role("heading", name="Import results")).to_be_visible()
    visibility = await page.evaluate("window.barVisibility")
    found = any(visibility) and not visibility[-1]
    assert found, "the progress bar must be visible only during the upload"
    await expect(page.locator("#result dd")).to_have_text(["40", "0", "2", "42"])
    errors = page.get_by_role("region", name="Rows with errors").locator("tbody tr")
    await expect(errors).to_have_count(2)
    await expect(errors.nth(0)).to_contain_text(f"42{prefix}-41MAC Address must be a UID")
    await expect(errors.nth(1)).to_contain_text("43not a serialSerial No. must be")
    assert await tab.find_axe_violations() == []
    file = await download_csv(page, "Download as CSV")
    assert [row[0] for row in file.rows] == ["42", "43"]
    assert len(await ada.list_all("cards", search=prefix)) == 40
    await tab.open("/console/cards")
    await page.get_by_role("searchbox", name="Search").press_sequentially(f"{prefix}-17".lower())
    await expect(page.locator("#rows tr")).to_have_count(1)


async def test_oversized_or_invalid_card_file_is_rejected(tab: Tab, tmp_path: Path) -> None:
    page = tab.page
    await tab.open("/console/cards/upload")
    file_input = page.get_by_label("CSV file")
    large, wrong = tmp_path / "large.csv", tmp_path / "wrong.csv"
    large.write_bytes(b"x" * (9 * 2**20))
    wrong.write_text("Name,Phone\n")
    await file_input.set_input_files(large)
    found = await file_input.evaluate("input => input.validationMessage")
    assert found == "File is larger than 8 MiB. Choose a smaller file."
    await page.get_by_role("button", name="Upload").click()
    await expect(page.locator("#result")).to_be_empty()
    await file_input.set_input_files(wrong)
    await page.get_by_role("button", name="Upload").click()
    await expect(page.locator("#result")).to_contain_text("The file must start with the header")
    assert await tab.find_axe_violations() == []
