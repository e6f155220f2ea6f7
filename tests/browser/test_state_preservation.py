"""Preservation of user state: input, open elements, and keyboard focus."""

import asyncio
import re
from typing import Final

from playwright.async_api import Page, Route, expect

from drivers.actors import Admin, new_phone_number, require_success
from drivers.chromium import Tab
from drivers.processes import ADMIN


async def _open_registration_form(tab: Tab) -> Page:
    """Open the registration form and fill it in."""
    await tab.open("/console/subscribers")
    await tab.page.get_by_role("button", name="Add customer").press("Enter")
    await tab.page.get_by_label("First name").fill("Zoë محمد")
    await tab.page.get_by_label("Last name").fill("K" * 60)
    await tab.page.get_by_role("textbox", name="Phone").fill("123")
    await tab.page.get_by_label("PIN").fill("6417")
    return tab.page


async def test_loaded_rows_are_restored_after_going_back(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console/transactions")
    rows = page.locator("#rows tr:not(.more)")
    first = await rows.count()
    await page.get_by_role("button", name="Show more").press("Enter")
    await expect(rows.nth(first).get_by_role("link").first).to_be_focused()
    await expect(page.locator("#found")).to_have_text(re.compile(r"\d+ more rows"))
    both = await rows.count()
    await rows.nth(first + 5).get_by_role("link").first.click()
    await expect(page.get_by_role("heading", name="Ledger entries")).to_be_visible()
    await page.go_back()
    await expect(rows).to_have_count(both)


async def test_search_without_results_is_announced(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console/agents")
    await page.get_by_role("searchbox", name="Search").press_sequentially("nobody at all")
    await expect(page.locator("#found")).to_have_text("No results.")
    await tab.open("/console/subscribers")
    await page.get_by_role("searchbox", name="Search").press_sequentially("nobody at all")
    await expect(page.locator("#found")).to_have_text("No results.")


async def test_open_table_and_focus_survive_the_automatic_refresh(tab: Tab) -> None:
    page = tab.page
    await page.clock.install()
    await tab.open("/console?period=week")
    table = page.locator("#chart-volume-table")
    summary = table.get_by_text("View as table")
    await summary.press("Enter")
    old = await table.element_handle()
    async with page.expect_response(re.compile("period=week")):
        await page.clock.fast_forward(16_000)
    await page.wait_for_function("old => !old.isConnected", arg=old)
    await expect(table).to_have_attribute("open", "")
    await expect(summary).to_be_focused()


async def test_automatic_refresh_pauses_while_the_pointer_is_pressed(tab: Tab) -> None:
    page = tab.page
    await page.clock.install()
    await tab.open("/console?period=week")
    await page.locator("#chart-volume").hover()
    old = await page.locator("#chart-volume-table").element_handle()
    await page.mouse.down()
    async with page.expect_response(re.compile("period=week")) as response_info:
        await page.clock.fast_forward(16_000)
    await (await response_info.value).finished()
    await page.evaluate("new Promise(requestAnimationFrame)")
    assert await page.evaluate("old => old.isConnected", old)
    await page.mouse.up()
    async with page.expect_response(re.compile("period=week")):
        await page.clock.fast_forward(16_000)
    await page.wait_for_function("old => !old.isConnected", arg=old)


async def test_validation_error_marks_the_field_and_keeps_the_input(tab: Tab) -> None:
    page = await _open_registration_form(tab)
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Add customer").click()
    await expect(dialog.locator(".problem")).to_contain_text(
        "Fix the highlighted fields and try again."
    )
    await expect(dialog.get_by_label("Phone")).to_be_focused()
    await expect(dialog.locator("#about-phone_number")).to_contain_text("Phone must")
    await expect(dialog.get_by_label("Last name")).to_have_value("K" * 60)
    assert await tab.find_axe_violations() == []


async def test_server_error_is_shown_in_the_dialog_and_keeps_the_input(tab: Tab) -> None:
    tab.monitor.expected_problems = ("503", "ERR_CONNECTION_REFUSED", "net::", "htmx:")
    page = await _open_registration_form(tab)
    dialog = page.get_by_role("dialog")
    register = dialog.get_by_role("button", name="Add customer")
    actions_url = "**/console/actions/**"
    await page.route(actions_url, lambda route: route.abort("connectionrefused"))
    await register.click()
    await expect(dialog.locator(".problem")).to_contain_text("Can't reach the server")
    await page.unroute(actions_url)
    await page.route(
        actions_url,
        lambda route: route.fulfill(status=503, json={"error": "x", "message": "Too busy now"}),
    )
    await register.click()
    await expect(dialog.locator(".problem")).to_have_text("Too busy now")
    await expect(dialog.get_by_label("Last name")).to_have_value("K" * 60)
    await expect(dialog.get_by_label("PIN")).to_have_value("6417")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Add customer")).to_be_focused()


async def test_long_name_does_not_overflow(tab: Tab, ada: Admin) -> None:
    response = await ada.post(
        "subscribers",
        first_name="W" * 60,
        last_name="محمد",
        phone_number=new_phone_number(),
        pin="6417",
    )
    subscriber_id = require_success(response)["subscriber_id"]
    too_wide = "element => element.scrollWidth - element.clientWidth"
    await tab.open(f"/console/subscribers/{subscriber_id}")
    assert await tab.page.locator("html").evaluate(too_wide) == 0
    await tab.open(f"/console/subscribers?search={subscriber_id}")
    await expect(tab.page.locator("#rows tr")).to_have_count(1)
    assert await tab.page.locator(".scroll").evaluate(too_wide) == 0


async def test_print_and_large_text_layouts_do_not_overflow(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console/administrators")
    # With large text, the table is wider than the page and scrolls in its own container.
    await page.locator("html").evaluate("html => { html.style.fontSize = '24px'; }")
    too_wide = "element => element.scrollWidth - element.clientWidth"
    assert await page.locator("html").evaluate(too_wide) == 0
    await tab.open("/console/transactions")
    await page.set_viewport_size({"width": 718, "height": 1000})
    await page.emulate_media(media="print", color_scheme="dark")
    await expect(page.get_by_role("columnheader", name="Amount")).to_be_visible()
    for text in ("Export CSV", "My work", "Show more"):
        await expect(page.get_by_text(text, exact=True).first).to_be_hidden()
    assert await page.locator("html").evaluate(too_wide) == 0
    style = "element => [getComputedStyle(element).color, getComputedStyle(element).colorScheme]"
    assert await page.locator("h1").evaluate(style) == ["rgb(22, 27, 36)", "light"]


async def test_expired_session_returns_to_the_page_after_signing_in(tab: Tab) -> None:
    page = await _open_registration_form(tab)
    await page.context.clear_cookies()
    await page.get_by_role("dialog").get_by_role("button", name="Add customer").click()
    await expect(page.get_by_text("Your session expired")).to_be_visible()
    await page.get_by_label("Email").fill(ADMIN["email"])
    await page.get_by_label("Password").fill(ADMIN["password"])
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Customers")


#: Records the form's state when the response redirects to a page that is not loaded yet.
_RECORD_FORM_STATE: Final = """
() => addEventListener("htmx:afterRequest", ({ target: form }) => {
    const { disabled } = form.querySelector("[type=submit]");
    sessionStorage.setItem("formState", `${form.className}, ${disabled ? "disabled" : "enabled"}`);
})"""


async def test_double_click_on_a_slow_connection_submits_once(tab: Tab) -> None:
    page, released = tab.page, asyncio.Event()
    methods: list[str] = []

    async def delay(route: Route) -> None:
        methods.append(route.request.method)
        await released.wait()
        await route.continue_()

    await tab.open("/console/subscribers")
    await page.route("**/console/actions/**", delay)
    opener = page.get_by_role("button", name="Add customer")
    await opener.dblclick()
    await expect(opener).to_have_class(re.compile("htmx-request"))
    released.set()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("First name").fill("Slow")
    await dialog.get_by_label("Last name").fill("Line")
    await dialog.get_by_label("Phone").fill(new_phone_number())
    await dialog.get_by_label("PIN").fill("6417")
    await page.evaluate(_RECORD_FORM_STATE)
    await dialog.get_by_role("button", name="Add customer").dblclick()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Slow Line")
    assert methods == ["GET", "POST"]
    found = await page.evaluate("sessionStorage.getItem('formState')")
    assert found == "dialog-content htmx-request, disabled"


async def test_download_progress_is_not_reported_as_upload_progress(tab: Tab) -> None:
    await tab.open("/console/cards/upload")
    dispatch_progress = """([loaded, total]) => document.querySelector("#file").form.dispatchEvent(
        new CustomEvent("htmx:xhr:progress",
            { bubbles: true, detail: { lengthComputable: true, loaded, total } }))"""
    note = tab.page.locator("[data-upload-note]")
    for progress, expected_note in (
        ([500, 1000], "50% uploaded"),
        ([1000, 1000], "Uploaded. Checking rows…"),
        ([10, 20], "Uploaded. Checking rows…"),
    ):
        await tab.page.evaluate(dispatch_progress, progress)
        await expect(note).to_have_text(expected_note)


async def test_click_before_the_scripts_have_loaded_is_repeated(tab: Tab) -> None:
    page, may_load = tab.page, asyncio.Event()

    async def delay(route: Route) -> None:
        await may_load.wait()
        await route.continue_()

    await page.route("**/assets/htmx.min.js", delay)
    await page.goto(f"{tab.base_url}/console/subscribers", wait_until="commit")
    await page.get_by_role("button", name="Add customer").click(no_wait_after=True)
    await expect(page.get_by_role("dialog")).to_be_hidden()
    may_load.set()
    await expect(page.get_by_role("dialog").get_by_label("First name")).to_be_visible()
    await page.unroute_all()


async def test_error_of_a_page_form_is_only_its_message(tab: Tab) -> None:
    """The response is a whole page, whose other paragraphs must not be part of the message."""
    tab.monitor.expected_problems = ("422",)
    page = tab.page
    await tab.open("/console/approvals/rules/edit")
    group = page.get_by_role("group").filter(has=page.get_by_role("heading", name="Money"))
    if await group.get_attribute("open") is None:  # other tests may have set rules
        await group.locator("summary").click()
    await page.locator("input[name=roles_agent_fund]").first.check()
    await page.locator("input[name=above_agent_fund]").fill("abc")
    await page.get_by_role("button", name="Save rules").click()
    problem = "Not saved. Float top-up: above must be a decimal number such as 500.00."
    await expect(page.locator("#problem")).to_have_text(problem)
    await expect(page.locator("input[name=above_agent_fund]")).to_have_value("abc")
