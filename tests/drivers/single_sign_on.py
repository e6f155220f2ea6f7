"""Sign-in at an identity provider, step by step."""

import html
import re

import httpx2

from drivers.console import ConsoleClient
from drivers.identity_provider import FakeProvider

CALLBACK = "/console/sso/callback"
_REFRESH = re.compile(r'<meta http-equiv="refresh" content="0; url=([^"]+)">')


async def follow_provider(
    console: ConsoleClient, provider: FakeProvider, to: str = ""
) -> httpx2.Response:
    """Start a sign-in and follow the provider's redirect back to the console."""
    started = await console.client.get("/console/sso/start", params={"to": to} if to else None)
    assert started.status_code == 303, started.text
    callback = provider.authorize(started.headers["Location"])
    return await console.client.get(CALLBACK, params=callback)


def get_next_url(response: httpx2.Response) -> str:
    """Return the URL that a page opens automatically."""
    match = _REFRESH.search(response.text)
    assert match is not None, response.text
    return html.unescape(match[1])
