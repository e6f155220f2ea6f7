"""Browser and operating system names in the session list."""

import pytest

from tapgate.sites.console.devices import describe_device
from tapgate.sites.console.translation.translator import Language, get_translator

_ENGLISH = get_translator(Language.EN)
_WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
_IOS = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
_MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
_WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)"
_LINUX = "Mozilla/5.0 (X11; Linux x86_64)"
_IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X)"
_ANDROID = "Mozilla/5.0 (Linux; Android 10; K)"


@pytest.mark.parametrize(
    ("user_agent", "device"),
    [
        (f"{_LINUX} {_WEBKIT} Chrome/140.0.0.0 Safari/537.36", "Chrome on Linux"),
        (f"{_LINUX} {_WEBKIT} HeadlessChrome/140.0.0.0 Safari/537.36", "Chrome on Linux"),
        (f"{_ANDROID} {_WEBKIT} Chrome/140.0.0.0 Mobile Safari/537.36", "Chrome on Android"),
        (f"{_IPHONE} {_IOS} CriOS/140.0.7339.39 Mobile/15E148 Safari/604.1", "Chrome on iPhone"),
        (
            f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {_WEBKIT} Chrome/140.0.0.0 Safari/537.36",
            "Chrome on ChromeOS",
        ),
        (f"{_WINDOWS} {_WEBKIT} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0", "Edge on Windows"),
        (f"{_IPHONE} {_IOS} Version/18.0 EdgiOS/140.0 Safari/604.1", "Edge on iPhone"),
        (f"{_MAC} {_WEBKIT} Chrome/138.0.0.0 Safari/537.36 OPR/122.0.0.0", "Opera on macOS"),
        (
            f"{_ANDROID} {_WEBKIT} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36",
            "Samsung Internet on Android",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:143.0) Gecko/20100101 Firefox/143.0",
            "Firefox on Windows",
        ),
        (f"{_IPHONE} {_IOS} FxiOS/143.0 Mobile/15E148 Safari/605.1.15", "Firefox on iPhone"),
        (f"{_IPHONE} {_IOS} Version/18.5 Mobile/15E148 Safari/604.1", "Safari on iPhone"),
        (f"{_MAC} {_IOS} Version/18.5 Safari/605.1.15", "Safari on macOS"),
    ],
)
def test_browsers_are_shown_by_name(user_agent: str, device: str) -> None:
    assert describe_device(user_agent, _ENGLISH) == device


@pytest.mark.parametrize(
    ("user_agent", "device"),
    [
        (None, "Unknown"),
        ("", "Unknown"),
        ("  ", "Unknown"),
        ("curl/8.14.1", "curl/8.14.1"),
        ("python-httpx/0.28 Chrome/1 Linux", "python-httpx/0.28 Chrome/1 Linux"),
        ("Mozilla/5.0 (compatible) Chrome/1", "Mozilla/5.0 (compatible) Chrome/1"),
        ("{browser} {0} %s <b>", "{browser} {0} %s <b>"),
        ("x" * 300, "x" * 40 + "…"),
    ],
)
def test_other_clients_are_shown_by_the_start_of_their_header(
    user_agent: str | None, device: str
) -> None:
    assert describe_device(user_agent, _ENGLISH) == device


def test_devices_are_named_in_french() -> None:
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
    assert describe_device(firefox, get_translator(Language.FR)) == "Firefox sur Linux"
