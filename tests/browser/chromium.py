"""The system's Chromium, driven by Playwright; and a tab that watches what a page does."""

import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    async_playwright,
)

ColorScheme = Literal["light", "dark"]
AxeCheck = Literal["structure", "contrast", "all"]

EXECUTABLE_NAMES: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)
DESKTOP_VIEWPORT: Final[ViewportSize] = {"width": 1280, "height": 900}
PHONE_VIEWPORT: Final[ViewportSize] = {"width": 390, "height": 844}

#: Without what Chromium does on its own account: it would ask hosts that nobody here has asked for.
_ARGUMENTS: Final = (
    "--disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
).split()
_AXE_SCRIPT: Final = Path(__file__).parent / "axe" / "axe.min.js"
_AXE_OPTIONS: Final[dict[AxeCheck, dict[str, Any]]] = {
    "structure": {"rules": {"color-contrast": {"enabled": False}}},
    "contrast": {"runOnly": ["color-contrast"]},
    "all": {},
}
_SEVERE_IMPACTS: Final = ("serious", "critical")


def find_executable() -> str | None:
    return next(filter(None, map(shutil.which, EXECUTABLE_NAMES)), None)


def should_take_screenshots() -> bool:
    return bool(os.environ.get("TAPGATE_PICTURES"))


@contextlib.asynccontextmanager
async def launch() -> AsyncIterator[Browser]:
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_executable(), args=[*_ARGUMENTS, *as_root]
        )
        try:
            yield browser
        finally:
            await browser.close()


@contextlib.asynccontextmanager
async def open_tab(browser: Browser, address: str, size: ViewportSize) -> AsyncIterator["Tab"]:
    """In the end nothing may have gone wrong in it."""
    # Without motion: a colour on its way to another is none that anybody reads.
    context = await browser.new_context(
        viewport=size, locale="en-GB", timezone_id="Africa/Freetown", reduced_motion="reduce"
    )
    try:
        opened = Tab(await context.new_page(), address.rstrip("/"))
        yield opened
        opened.monitor.require_no_problems()
    finally:
        await context.close()


class PageMonitor:
    """What must not happen on any page: an error in the console, something that the content
    security policy refused, a request to another host."""

    def __init__(self, page: Page, address: str) -> None:
        self._origin = urlsplit(address).netloc
        self.problems: list[str] = []
        #: Refusals that a test brings about; the browser reports each as an error of its own.
        self.expected_problems: tuple[str, ...] = ()
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            where = message.location.get("url", "")
            self.problems.append(f"{message.type}: {message.text} ({where})")

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != self._origin:
            self.problems.append(f"asked another host: {request.url}")

    def require_no_problems(self) -> None:
        wrong = [
            one for one in self.problems if not any(part in one for part in self.expected_problems)
        ]
        assert not wrong, "\n".join(wrong)


class Tab:
    """One person's browser."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.base_url = address
        self.monitor = PageMonitor(page, address)

    async def open(self, path: str) -> None:
        await self.page.goto(self.base_url + path)

    async def sign_in(self, email: str, password: str) -> None:
        await self.open("/console/sign-in")
        await self.page.get_by_label("E-mail").fill(email)
        await self.page.get_by_label("Password").fill(password)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.wait_for_url(lambda url: "sign-in" not in url)

    async def sign_in_by_request(self, email: str, password: str) -> None:
        """Without the form, which some tests are about, and others would only wait for."""
        answer = await self.page.request.post(
            f"{self.base_url}/console/sign-in",
            form={"email": email, "password": password},
            headers={"Sec-Fetch-Site": "same-origin"},
            max_redirects=0,
        )
        assert answer.status == 303, await answer.text()

    async def find_axe_violations(
        self, look: AxeCheck = "structure", within: str = "html"
    ) -> list[str]:
        """What the accessibility checker finds serious or critical on the page as it is, or in a
        part of it. Contrasts take longer than everything else together; each page is looked at for
        them once."""
        if not await self.page.evaluate("'axe' in window"):
            # Evaluated, not added as a script: the page's own policy stays as it is.
            await self.page.evaluate(_AXE_SCRIPT.read_text())
        options = {"resultTypes": ["violations"], "preload": False}
        found: dict[str, Any] = await self.page.evaluate(
            "([within, options]) => axe.run(within, options)",
            [within, options | _AXE_OPTIONS[look]],
        )
        return [
            f"{one['id']}: {one['help']}: {node['html'][:200]}"
            for one in found["violations"]
            if one["impact"] in _SEVERE_IMPACTS
            for node in one["nodes"]
        ]

    async def take_screenshot(self, name: str, *, full: bool = True) -> None:
        """Of the whole page or of what is seen of it, where somebody wants to look at it."""
        if should_take_screenshots():
            path = Path(os.environ["TAPGATE_PICTURES"]) / f"{name}.png"
            await self.page.screenshot(path=path, full_page=full, animations="disabled")
