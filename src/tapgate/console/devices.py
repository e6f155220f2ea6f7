"""Names of browsers and operating systems in `User-Agent` headers."""

from typing import Final

from tapgate.console.translation.translator import Translator

#: Name -> text in the header. The first match counts: most browsers also name Chrome and Safari.
_BROWSERS: Final = {
    "Edge": "Edg",
    "Opera": "OPR/",
    "Samsung Internet": "SamsungBrowser",
    "Firefox": "Firefox/",
    "Chrome": "Chrome/",
    "Safari": "Safari/",
}
_SYSTEMS: Final = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "macOS": "Mac OS X",
    "Linux": "Linux",
}


def describe_device(user_agent: str | None, translator: Translator) -> str:
    """Return, for example, `Chrome on Linux`; the header itself if it is not of a browser."""
    if not user_agent:
        return translator.translate("Unknown")
    browser = next((name for name, mark in _BROWSERS.items() if mark in user_agent), None)
    system = next((name for name, mark in _SYSTEMS.items() if mark in user_agent), None)
    if browser is None or system is None:
        return user_agent
    return translator.translate("{browser} on {system}", browser=browser, system=system)
