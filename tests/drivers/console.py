"""Console client that keeps cookies and submits forms as a browser does.

Requests for a partial page carry the headers that htmx sends.
"""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

import httpx2

from harness import BearerAuth, Harness

FormFields = Mapping[str, str | Sequence[str]]

_CSRF_PATTERN: Final = re.compile(r'hx-headers=\'{"X-CSRF-Token": "([0-9a-f]+)"')
_REQUEST_ID_PATTERN: Final = re.compile(r'name="request_id" value="([^"]+)"')
_HIDDEN_FIELD_PATTERN: Final = re.compile(r'type="hidden" name="(request_id|seen)" value="([^"]+)"')
SESSION_COOKIE: Final = "tapgate_session"


def parse_request_id(form: str) -> str:
    """Return the idempotency key embedded in a form that moves money."""
    match = _REQUEST_ID_PATTERN.search(form)
    assert match is not None, form
    return match[1]


def contains_digits(text: str, digits: str) -> bool:
    """Return whether `digits` occur in the text, except inside an ID or a token."""
    return re.search(rf"(?<![\w-]){digits}(?![\w-])", text) is not None


class ConsoleClient:
    """Client of one admin. `referer` is the last page opened, from which forms are submitted.

    `site` is `/portal` for a user of a merchant, partner or agent.
    """

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.site = self.referer = "/console"

    @property
    def origin(self) -> str:
        return str(self.client.base_url).rstrip("/")

    @property
    def session(self) -> str | None:
        """Session token, or None when signed out."""
        return self.client.cookies.get(SESSION_COOKIE)

    def set_session(self, admin: BearerAuth) -> None:
        """Use an admin session from an API sign-in."""
        self.client.cookies.set(SESSION_COOKIE, admin.credential)

    async def sign_in(self, email: str, password: str) -> httpx2.Response:
        return await self.post_without_csrf(
            f"{self.site}/sign-in", {"email": email, "password": password}
        )

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        response = await self.client.get(path, headers=headers)
        if response.status_code == 200:
            self.referer = path
        return response

    async def get_page_text(self, path: str) -> str:
        """Return a page's text with HTML entities unescaped."""
        response = await self.get(path)
        assert response.status_code == 200, f"{path}: {response.status_code} {response.text}"
        return html.unescape(response.text)

    async def get_partial(self, path: str) -> httpx2.Response:
        """Request a partial page as htmx does."""
        return await self.client.get(path, headers=self._partial_headers())

    async def get_csrf_token(self) -> str:
        """Return the session's CSRF token, read from the account page."""
        match = _CSRF_PATTERN.search((await self.client.get(f"{self.site}/account")).text)
        assert match is not None, "the client is not signed in"
        return match[1]

    async def post_without_csrf(
        self, path: str, form: FormFields | None = None, **headers: str
    ) -> httpx2.Response:
        """Submit a form with exactly the given fields and same-origin request headers."""
        origin_headers = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin"}
        content = urlencode(form or {}, doseq=True)
        content_type = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self.client.post(
            path, content=content, headers=origin_headers | content_type | headers
        )

    async def post_form(self, path: str, form: FormFields | None = None) -> httpx2.Response:
        """Submit a form with the session's CSRF token."""
        return await self.post_without_csrf(
            path, {**(form or {}), "csrf": await self.get_csrf_token()}
        )

    async def post_partial(self, path: str, form: FormFields | None = None) -> httpx2.Response:
        """Submit a form as htmx does, with the CSRF token in a header."""
        headers = self._partial_headers() | {"X-CSRF-Token": await self.get_csrf_token()}
        return await self.post_without_csrf(path, form, **headers)

    async def post_file(
        self, path: str, content: bytes, *, csrf: str | None = None
    ) -> httpx2.Response:
        """Upload a file as htmx does, in the multipart field `file`."""
        origin_headers = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin"}
        token = {"X-CSRF-Token": await self.get_csrf_token() if csrf is None else csrf}
        files = {"file": ("cards.csv", content, "text/csv")}
        return await self.client.post(
            path, files=files, headers=self._partial_headers() | origin_headers | token
        )

    async def submit_action(
        self, name: str, form: FormFields | None = None, **path_params: str
    ) -> httpx2.Response:
        """Open an action's dialog and submit it; `path_params` go into the query string."""
        address = f"{self.site}/actions/{name}" + (
            f"?{urlencode(path_params)}" if path_params else ""
        )
        response = await self.get_partial(address)
        assert response.status_code == 200, f"{address}: {response.status_code} {response.text}"
        hidden = dict(_HIDDEN_FIELD_PATTERN.findall(response.text))
        return await self.post_partial(address, {**hidden, **(form or {})})

    def _partial_headers(self) -> dict[str, str]:
        return {"HX-Request": "true", "HX-Current-URL": self.origin + self.referer}


class ConsoleClients:
    """Factory for console clients that share one gateway."""

    def __init__(self, harness: Harness, transport: httpx2.AsyncBaseTransport) -> None:
        self.harness = harness
        self._transport = transport

    def create_signed_out(self, address: str = "http://gateway") -> ConsoleClient:
        """Return a client without a session."""
        return ConsoleClient(httpx2.AsyncClient(transport=self._transport, base_url=address))

    async def create_signed_in(self, role: str = "A") -> ConsoleClient:
        """Return a client signed in as a new admin with the given role letter."""
        client = self.create_signed_out()
        client.set_session(await self.harness.create_admin(role))
        return client
