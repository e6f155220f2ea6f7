"""What a page costs a browser: bytes over the wire, and the longest task of its main thread."""

import contextlib
import json
from typing import Any, Final, NamedTuple

from playwright.async_api import Browser
from playwright.async_api import TimeoutError as PageTimeoutError

from drivers.chromium import Tab

_CATEGORIES: Final = ["toplevel", "devtools.timeline"]
_IDLE_MS: Final = 3000


class PageWeight(NamedTuple):
    """Weight of one page view with an empty cache. Tasks are measured in CPU time."""

    requests: int
    bytes: int
    longest_task_ms: float


async def disable_cache(tab: Tab) -> None:
    session = await tab.page.context.new_cdp_session(tab.page)
    await session.send("Network.enable")
    await session.send("Network.setCacheDisabled", {"cacheDisabled": True})


async def weigh(browser: Browser, tab: Tab, url: str) -> PageWeight:
    """Open a page, and return its weight until the network is idle, or for 3 more seconds.

    CPU time, unlike the duration, does not depend on what else the machine does.
    """
    await browser.start_tracing(page=tab.page, categories=_CATEGORIES)
    await tab.open(url)
    with contextlib.suppress(PageTimeoutError):  # simulators always wait for messages
        await tab.page.wait_for_load_state("networkidle", timeout=_IDLE_MS)
    events: list[dict[str, Any]] = json.loads(await browser.stop_tracing())["traceEvents"]
    main_threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        event["tdur"] / 1000
        for event in events
        if event["name"] == "ThreadControllerImpl::RunTask"
        and (event["pid"], event["tid"]) in main_threads
        and "tdur" in event
    ]
    responses = [event["args"]["data"] for event in events if event["name"] == "ResourceFinish"]
    assert tasks and responses, "the trace has no tasks or no responses"
    return PageWeight(
        len(responses),
        sum(int(response.get("encodedDataLength", 0)) for response in responses),
        max(tasks),
    )
