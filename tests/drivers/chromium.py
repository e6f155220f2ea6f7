"""Chromium: tabs, accessibility checks, screenshots and downloads."""

import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from PIL import Image
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    ViewportSize,
    async_playwright,
    expect,
)

from drivers.csv_files import read_rows

#: Generous timeout, because the machine may be busy with other tests.
_TIMEOUT_MS: Final = 60_000
expect.set_options(timeout=_TIMEOUT_MS)

ColorScheme = Literal["light", "dark"]

EXECUTABLE_NAMES: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)
DESKTOP_VIEWPORT: Final[ViewportSize] = {"width": 1280, "height": 900}
PHONE_VIEWPORT: Final[ViewportSize] = {"width": 390, "height": 844}

#: Includes options that disable Chromium's own background requests to other hosts.
_ARGUMENTS: Final = (
    "--disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --process-per-site"
).split()
_AXE_SCRIPT: Final = Path(__file__).parents[1] / "browser" / "axe" / "axe.min.js"
#: Only violations, and no search for frames, which no page has.
_AXE_OPTIONS: Final = {"reporter": "no-passes", "iframes": False, "preload": False}
#: Disables the rules whose violations are neither serious nor critical, and contrast, which is
#: checked separately.
_CHECK_STRUCTURE: Final = """
    ([within, options]) => {
      const omitted = axe._audit.rules.filter(rule =>
        !["serious", "critical"].includes(rule.impact) || rule.id === "color-contrast");
      const rules = Object.fromEntries(omitted.map(rule => [rule.id, {enabled: false}]));
      return axe.run(within, {...options, rules});
    }"""
#: Checks one element for each combination of everything that contrast depends on: the text, the
#: surfaces behind it, and the class, which also decides whether the text is hidden or covered.
#: Skips the combinations in `checked`, and returns the others.
_CHECK_CONTRAST: Final = """
    async ([checked, options]) => {
      const known = new Set(checked), added = new Map(), surfaces = new Map();
      const describeSurface = element => {
        if (element === null) return "";
        if (!surfaces.has(element)) {
          const style = getComputedStyle(element);
          const parts = [style.backgroundColor, style.backgroundImage, style.opacity, style.filter];
          const own = parts.join() === "rgba(0, 0, 0, 0),none,1,none" ? "" : `${parts}/`;
          surfaces.set(element, describeSurface(element.parentElement) + own);
        }
        return surfaces.get(element);
      };
      for (const element of document.body.querySelectorAll("*")) {
        const hasText = [...element.childNodes].some(
          node => node.nodeType === Node.TEXT_NODE && node.data.trim());
        if (!hasText && !element.matches("input, select, textarea")) continue;
        if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
        const style = getComputedStyle(element);
        const text = [style.color, style.fontSize, style.fontWeight, style.textShadow,
          style.position, element.tagName, element.className, element.disabled];
        const key = `${describeSurface(element)} ${text}`;
        if (!known.has(key) && !added.has(key)) added.set(key, element);
      }
      if (added.size === 0) return [[], {violations: []}];
      const found = await axe.run(
        {include: [...added.values()]}, {...options, runOnly: ["color-contrast"]});
      return [[...added.keys()], found];
    }"""


def find_executable() -> str | None:
    return next(filter(None, map(shutil.which, EXECUTABLE_NAMES)), None)


def should_take_screenshots() -> bool:
    return bool(os.environ.get("TAPGATE_PICTURES"))


@contextlib.asynccontextmanager
async def launch() -> AsyncIterator[Browser]:
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_executable(), args=[*_ARGUMENTS, *as_root], timeout=_TIMEOUT_MS
        )
        try:
            yield browser
        finally:
            await browser.close()


@contextlib.asynccontextmanager
async def open_tab(browser: Browser, address: str, size: ViewportSize) -> AsyncIterator["Tab"]:
    """Open a tab without cookies, and fail on exit if its page had problems.

    All tabs share one context and one renderer process.
    """
    context = browser.contexts[0] if browser.contexts else await _open_context(browser, address)
    page = await context.new_page()
    try:
        await page.set_viewport_size(size)
        tab = Tab(page, address.rstrip("/"))
        yield tab
        tab.monitor.require_no_problems()
    finally:
        await page.close()
        await context.clear_cookies()


async def _open_context(browser: Browser, address: str) -> BrowserContext:
    """Open a context with a page that keeps the renderer process alive until the context closes."""
    # Without animations: a color in transition would distort contrast checks.
    context = await browser.new_context(
        locale="en-GB", timezone_id="Africa/Freetown", reduced_motion="reduce"
    )
    context.set_default_timeout(_TIMEOUT_MS)
    page = await context.new_page()
    await page.goto(f"{address.rstrip('/')}/console/sign-in")
    return context


class PageMonitor:
    """Records console errors and warnings, uncaught errors, and requests to other hosts."""

    def __init__(self, page: Page, address: str) -> None:
        self._origin = urlsplit(address).netloc
        self.problems: list[str] = []
        #: Substrings that identify the problems that the test provokes.
        self.expected_problems: tuple[str, ...] = ()
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            url = message.location.get("url", "")
            self.problems.append(f"{message.type}: {message.text} ({url})")

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != self._origin:
            self.problems.append(f"request to another host: {request.url}")

    def require_no_problems(self) -> None:
        unexpected = [
            item
            for item in self.problems
            if not any(part in item for part in self.expected_problems)
        ]
        assert not unexpected, "\n".join(unexpected)


class Tab:
    """A browser tab with its own session."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.base_url = address
        self.monitor = PageMonitor(page, address)
        self._checked_contrasts: set[str] = set()

    async def open(self, path: str) -> None:
        await self.page.goto(self.base_url + path)

    async def sign_in(self, email: str, password: str) -> None:
        await self.open("/console/sign-in")
        await self.page.get_by_label("Email").fill(email)
        await self.page.get_by_label("Password").fill(password)
        await self.page.get_by_role("button", name="Sign in", exact=True).click()
        await self.page.wait_for_url(lambda url: "sign-in" not in url)

    async def sign_in_by_request(self, email: str, password: str) -> None:
        """Sign in without the form, which is faster."""
        response = await self.page.request.post(
            f"{self.base_url}/console/sign-in",
            form={"email": email, "password": password},
            headers={"Sec-Fetch-Site": "same-origin"},
            max_redirects=0,
        )
        assert response.status == 303, await response.text()

    async def choose_action(self, name: str, row: Locator | None = None) -> None:
        """Choose an action from the page's menu, or from a row's menu."""
        menu = (row or self.page.get_by_role("main")).locator("details.dropdown").first
        await menu.locator("summary").click()
        await menu.get_by_role("button", name=name, exact=True).click()

    async def find_axe_violations(self, within: str = "html") -> list[str]:
        """Return serious and critical accessibility violations in the element `within`.

        Contrast checks take as long as all other checks together, so they are omitted.
        """
        await self._load_axe()
        found = await self.page.evaluate(_CHECK_STRUCTURE, [within, _AXE_OPTIONS])
        return _describe_violations(found)

    async def find_contrast_violations(self) -> list[str]:
        """Return texts with too little contrast, except those that look like one checked before."""
        await self._load_axe()
        checked, found = await self.page.evaluate(
            _CHECK_CONTRAST, [[*self._checked_contrasts], _AXE_OPTIONS]
        )
        self._checked_contrasts.update(checked)
        return _describe_violations(found)

    async def load_axe_in_every_page(self) -> None:
        """Load axe in all pages that are opened from now on, which is faster than one by one."""
        await self.page.add_init_script(path=_AXE_SCRIPT)

    async def _load_axe(self) -> None:
        await self.page.wait_for_load_state()  # after a click on a link, it may still be loading
        if not await self.page.evaluate("'axe' in window"):
            # Evaluated rather than added as a script, so the page's CSP does not block it.
            await self.page.evaluate(_AXE_SCRIPT.read_text())

    async def take_screenshot(
        self, name: str, *, full: bool = True, within: str | None = None
    ) -> None:
        """Take a screenshot of the page or of one element, if TAPGATE_PICTURES is set."""
        if should_take_screenshots():
            path = Path(os.environ["TAPGATE_PICTURES"]) / f"{name}.png"
            await self.page.wait_for_load_state("networkidle")  # parts that load later
            if within is None:
                await self.page.screenshot(path=path, full_page=full, animations="disabled")
            else:
                await self.page.locator(within).screenshot(path=path, animations="disabled")
            if name.startswith("readme/"):  # part of the documents, so it should be small
                # Dithering would spoil the compression of plain surfaces.
                colors = Image.open(path).convert("RGB").quantize(96, dither=Image.Dither.NONE)
                colors.save(path, optimize=True)


def _describe_violations(found: dict[str, Any]) -> list[str]:
    return [
        f"{item['id']}: {item['help']}: {node['html'][:200]}: {_join_messages(node)}"
        for item in found["violations"]
        for node in item["nodes"]
    ]


def _join_messages(node: dict[str, Any]) -> str:
    return " ".join(check["message"] for check in node["any"] + node["all"] + node["none"])


class CsvFile(NamedTuple):
    name: str
    headers: list[str]
    rows: list[list[str]]


async def download_csv(page: Page, name: str, role: Literal["button", "link"] = "link") -> CsvFile:
    """Click a link or button and return the CSV file that it downloads."""
    async with page.expect_download() as waiting:
        await page.get_by_role(role, name=name).click()
    file = await waiting.value
    heads, *rows = read_rows((await file.path()).read_bytes())
    return CsvFile(file.suggested_filename, heads, rows)
