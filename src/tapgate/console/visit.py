"""One request of a person's browser, and what a page may do with it."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec
from jinja2 import Environment

from tapgate.console import session
from tapgate.console.asked import FORM, Fields
from tapgate.console.rendering import page_of
from tapgate.credentials.principals import Principal
from tapgate.edge.endpoint import Reply
from tapgate.edge.request_context import RequestContext
from tapgate.edge.site import InternalApi
from tapgate.errors import ApiError, Code

#: A page runs this site's scripts, shows this site's pictures and talks to this site: nothing
#: inline, nothing from elsewhere, no page around it.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_HTML: Final = "text/html; charset=utf-8"
_LARGE: Final = 64 * 1024
HOME: Final = "/console"
SIGN_IN: Final = "/console/sign-in"


class Visit:
    """Whoever is signed in asks the interface's operations through it, and only those."""

    def __init__(self, inside: InternalApi, call: RequestContext, templates: Environment) -> None:
        self.call = call
        self.query = Fields(call.query)
        self.form = Fields(b"")
        self._inside = inside
        self._templates = templates

    @property
    def principal(self) -> Principal:
        return self.call.principal

    @property
    def is_part(self) -> bool:
        """Whether a page that is there already asks for a part of itself."""
        return self.call.get_header(b"hx-request") == "true"

    async def read_form(self) -> None:
        """What was sent; a file comes as the body itself."""
        kind = (self.call.get_header(b"content-type") or "").partition(";")[0].strip().lower()
        sent = self.call.body if kind == FORM else b""
        if len(sent) > _LARGE:
            # With a photo in it that takes long, and payments would wait.
            self.form = await asyncio.to_thread(Fields, sent)
        else:
            self.form = Fields(sent)

    async def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Any:
        """What the interface answers, as an API client would read it."""
        return await self._ask("GET", path, urlencode(query or {}).encode())

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        encoded = b"" if body is None else msgspec.json.encode(body)
        return await self._ask(method, path, body=encoded)

    async def pass_on(self, method: str, path: str) -> Any:
        """The request's own body, as it came."""
        return await self._ask(method, path, body=self.call.body)

    async def _ask(self, method: str, path: str, query: bytes = b"", body: bytes = b"") -> Any:
        call = self.call
        headers = {b"content-type": call.headers.get(b"content-type", b"")}
        answer = await self._inside.dispatch(
            RequestContext(
                services=call.services,
                method=method,
                path=path,
                query=query,
                headers=headers,
                ip=call.ip,
                request_id=call.request_id,
                body=body,
                caller=call.caller,
            )
        )
        if isinstance(answer, Reply):
            return answer if isinstance(answer.body, bytes) else msgspec.to_builtins(answer.body)
        return msgspec.to_builtins(answer)

    def may(self, endpoint: str, field: str | None = None) -> bool:
        """Whether this admin may: `POST /api/v1/agents/{id}/fund`."""
        return self._inside.can_call(self.principal, endpoint, field)

    async def require(
        self, endpoint: str, field: str | None = None, sentence: str = "Your role may not do this"
    ) -> None:
        """Refuses who may not; the audit log knows it, as if the endpoint had been called."""
        await self._inside.require_access(self.call, endpoint, field, sentence)

    async def get_file(self, path: str) -> Reply[bytes]:
        """A picture or a document, as the interface gives it."""
        reply = await self.get(path)
        assert isinstance(reply, Reply), "only asked of endpoints that give files"
        reply.headers = {**reply.headers, **HEADERS}
        return reply

    async def get_if_allowed(
        self, endpoint: str, path: str, query: Mapping[str, str | int] | None = None
    ) -> Any:
        """None where the role may not: a page then is without that part."""
        return await self.get(path, query) if self.may(endpoint) else None

    def page(self, template: str, status: int = 200, **values: Any) -> Reply[bytes]:
        settings, caller = self.call.services.settings, self.call.caller
        sentence = None if self.is_part else session.said(self.call)
        cookie = {} if sentence is None else {"Set-Cookie": session.nothing_said(self.call)}
        text = self._templates.get_template(template).render(
            values,
            visit=self,
            me=caller,
            may=self.may,
            path=self.call.path,
            query=self.query,
            said=sentence,
            is_part=self.is_part,
            csrf=None if caller is None else session.csrf_token(self.call, caller),
            environment=settings.environment,
            page_of=lambda public_id: page_of(public_id, self.may),
            has_simulators=self._has_simulators,
            currency=settings.currency,
            zone=str(settings.timezone),
        )
        return Reply(
            text.encode(errors="replace"),
            status=status,
            headers={**HEADERS, **cookie, "Vary": "HX-Request"},
            content_type=_HTML,
        )

    @property
    def _has_simulators(self) -> bool:
        """They act for any customer and any terminal, so they are for system administrators."""
        caller, settings = self.call.caller, self.call.services.settings
        return settings.has_simulators and caller is not None and caller.role == "system_admin"

    def go(self, path: str, said: str | None = None, cookie: str | None = None) -> Reply[bytes]:
        """To another page of this site, with a sentence for the person to read there."""
        headers = dict(HEADERS)
        if self.is_part:
            headers["HX-Redirect"] = path
        else:
            headers["Location"] = path
        if cookie is None and said is not None:
            cookie = session.say(self.call, said)
        if cookie is not None:
            headers["Set-Cookie"] = cookie
        return Reply(b"", status=200 if self.is_part else 303, headers=headers, content_type=_HTML)

    def more(self, cursor: str) -> str:
        """The address of a list's next page, with the filters of this one."""
        query = [pair for pair in parse_qsl(self.call.query.decode()) if pair[0] != "cursor"]
        return f"{self.call.path}?{urlencode([*query, ('cursor', cursor)])}"

    @property
    def came_from(self) -> str:
        """The page that a part was asked from."""
        return own_path(self.call.get_header(b"hx-current-url") or "")

    def sign_in(self) -> Reply[bytes]:
        """To where one signs in, and from there back to this page. What stood in a form that could
        not be sent is gone, so it is said that the session has ended."""
        called = {}
        if self.is_part:
            called = {"to": self.came_from, "ended": "yes"}
        elif self.call.method == "GET" and self.call.path != HOME:
            called = {"to": own_path(f"{self.call.path}?{self.call.query.decode('latin-1')}")}
        address = f"{SIGN_IN}?{urlencode(called)}" if called else SIGN_IN
        return self.go(address, cookie=session.end(self.call))

    def json(self, value: Any) -> Reply[bytes]:
        """For a script of one of the pages."""
        return Reply(msgspec.json.encode(value), headers=HEADERS)


def own_path(address: str) -> str:
    """The path and the query of an address; where they may lead to another site, the first page."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return HOME
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    is_own = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if is_own and path.isascii() and path.isprintable() else HOME


def at(template: str, names: Mapping[str, str]) -> str:
    """`/api/v1/agents/{id}` with the names put in, so that none of them leaves its place."""
    path = template
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    if "{" in path:
        raise ApiError(Code.INVALID_REQUEST, "The address of this page is not complete")
    return path
