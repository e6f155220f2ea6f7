"""Browser and operating system names in `User-Agent` headers."""

from typing import Final

from tapgate.sites.console.translation.translator import Translator

#: Text in the header -> name. The first match counts: most browsers also name Chrome and Safari.
_BROWSERS: Final = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "Chrome/": "Chrome",
    "CriOS/": "Chrome",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "Safari/": "Safari",
}
#: The first match counts here too: Android also names Linux, and iPhones name Mac OS X.
_SYSTEMS: Final = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}
_BROWSER_PREFIX: Final = "Mozilla/5.0 ("
_MAX_LENGTH: Final = 40


def describe_device(user_agent: str | None, translator: Translator) -> str:
    """Return, for example, `Chrome on Linux`, or the header's start if it names no browser."""
    text = (user_agent or "").strip()
    if not text:
        return translator.translate("Unknown")
    browser, system = (
        next((name for mark, name in names.items() if mark in text), None)
        for names in (_BROWSERS, _SYSTEMS)
    )
    if browser and system and text.startswith(_BROWSER_PREFIX):
        return translator.translate("{browser} on {system}", browser=browser, system=system)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"
