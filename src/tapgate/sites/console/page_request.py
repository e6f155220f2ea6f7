"""Page request: one browser request to the console, with access to the API."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit
from zoneinfo import ZoneInfo

import msgspec
from jinja2 import Environment

from tapgate.auth.principals import Principal
from tapgate.business.branding.model import DEFAULT_COLOR, to_record
from tapgate.business.branding.operations import build_default_branding
from tapgate.http.api import approval_reason
from tapgate.http.api.app import App
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate.sites.console import session, times
from tapgate.sites.console.forms import FORM_CONTENT_TYPE, FormData
from tapgate.sites.console.navigation import HOME_PATH, Feature, Group, build_navigation
from tapgate.sites.console.rendering import get_page_path
from tapgate.sites.console.translation.translator import (
    Language,
    Translator,
    get_translator,
    negotiate,
)
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.approvals import ApprovalRecord, ApprovalResponse

#: Allows scripts, styles, fonts, images, connections and form targets only on this site, and
#: forbids inline code and framing. Images may also be `data:` and `blob:` URLs.
_CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_HTML_CONTENT_TYPE: Final = "text/html; charset=utf-8"
_LARGE_FORM_BYTES: Final = 64 * 1024
Query = Mapping[str, str | int]
#: Sites with pages for signed-in people of the platform, or of a merchant, partner or
#: agent. Everyone has the one or the other.
CONSOLE: Final = "/console"
PORTAL: Final = "/portal"
ACCOUNT_PATH: Final = f"{CONSOLE}/account"
SIGN_IN_PATH: Final = f"{CONSOLE}/sign-in"
_LANGUAGE_HEADER: Final = b"x-language"
_PREVIOUS_FIELD: Final = "previous"
#: Field of a form whose request waits for approval.
APPROVAL_REASON_FIELD: Final = "approval_reason"


class RequestHeldError(Exception):
    """An approval rule holds the request, so nothing was executed."""

    def __init__(self, approval: ApprovalRecord) -> None:
        super().__init__(approval.id)
        self.approval = approval


class PageRequest:
    """Browser request to a page. Pages read and change data only through the API's operations."""

    def __init__(
        self,
        app: App,
        request: RequestContext,
        templates: Mapping[Language, Environment],
        site: str = CONSOLE,
    ) -> None:
        self.context = request
        #: Path of the console or the portal, to which forms and the account page belong.
        self.site = site
        self.query = FormData(request.query)
        self.form = FormData(b"")
        #: Waiting items by work queue, for the navigation; only queues that the admin may see.
        self.work_queues: dict[str, Any] = {}
        #: Approval rule suspension, or None.
        self.approval_suspension: dict[str, Any] | None = None
        #: Records that a list's filters select by ID, by filter name.
        self.picked_records: dict[str, Any] = {}
        #: Why the factor that the form contains was not accepted, or None.
        self.step_up_problem: str | None = None
        #: Records of `GET /admin/branding` and `GET /admin/me/preferences`.
        self.branding: dict[str, Any] = _get_default_branding(request)
        self.preferences: dict[str, Any] = {"theme": None, "timezone": None, "language": None}
        self._app = app
        self._templates = templates

    @property
    def principal(self) -> Principal:
        return self.context.principal

    @property
    def own_site(self) -> str:
        """Path of the caller's site."""
        return CONSOLE if self.principal.owner is None else PORTAL

    @property
    def sign_in_path(self) -> str:
        return f"{self.site}/sign-in"

    @property
    def is_partial(self) -> bool:
        """Whether a loaded page requests a fragment of itself."""
        return self.context.get_header(b"hx-request") == "true"

    @property
    def translator(self) -> Translator:
        """Texts in the language of the page that requests a fragment, the admin or the browser."""
        if self.is_partial:
            name = self.context.get_header(_LANGUAGE_HEADER)
        else:
            accepted = self.context.get_header(b"accept-language")
            name = self.preferences["language"] or negotiate(accepted)
        return get_translator(next((item for item in self._templates if item == name), Language.EN))

    def translate(self, text: str, /, **values: Any) -> str:
        return self.translator.translate(text, **values)

    @property
    def now(self) -> datetime:
        return self.context.services.clock()

    @property
    def zone(self) -> ZoneInfo:
        """Time zone that the admin has chosen, else the browser's, else the platform's."""
        chosen = self.preferences["timezone"] or session.get_timezone(self.context)
        return times.get_zone(chosen) or self.context.services.settings.timezone

    async def read_form(self) -> None:
        """Parse the body into `form`. An uploaded file is the body itself and is not parsed."""
        content_type = (
            (self.context.get_header(b"content-type") or "").partition(";")[0].strip().lower()
        )
        body = self.context.body if content_type == FORM_CONTENT_TYPE else b""
        if len(body) > _LARGE_FORM_BYTES:
            # Parsing a form with a photo would block the event loop, and payments with it.
            self.form = await asyncio.to_thread(FormData, body)
        else:
            self.form = FormData(body)

    async def load_navigation(self) -> None:
        """Load what every page shows: waiting items, and any approval suspension."""
        if not self.is_partial:
            # After an action, which leaves a message, the numbers must include its effect.
            query = {} if session.get_flash(self.context) is None else {"fresh": "true"}
            queues = await self.get_if_allowed("/api/v1/work-queues", query)
            self.work_queues = {queue["name"]: queue for queue in (queues or {"data": ()})["data"]}
            rules = await self.get_if_allowed("/api/v1/admin/approval-rules")
            self.approval_suspension = rules and rules["suspended"]

    async def load_preferences(self) -> None:
        """Load how the admin sees the console. A fragment has its page's language."""
        if not self.is_partial and self.context.caller is not None:
            preferences = await self.get_if_allowed("/api/v1/admin/me/preferences")
            self.preferences = preferences or self.preferences

    async def load_branding(self) -> None:
        """Load the platform's name, logo and color. Fragments do not show them."""
        if not self.is_partial:
            self.branding = await self.get("/api/v1/admin/branding")

    def count_waiting(self, *queues: str) -> int:
        """Return the number of items that wait in some work queues."""
        return sum(self.work_queues[name]["waiting"] for name in queues if name in self.work_queues)

    async def get(self, path: str, query: Query | None = None, /, **path_params: str) -> Any:
        """Send a GET request to the API.

        Return the response body as built-in types, or the whole reply if the body is a file.
        """
        query_string = urlencode(query or {}).encode()
        return await self._request("GET", build_path(path, path_params), query_string)

    async def send(self, method: str, path: str, body: Any = None, /, **path_params: str) -> Any:
        encoded = b"" if body is None else msgspec.json.encode(body)
        return await self._request(method, build_path(path, path_params), body=encoded)

    async def read_openapi_document(self) -> bytes:
        return await self._app.openapi_document.read()

    async def forward_body(self, method: str, path: str, query: Query | None = None) -> Any:
        """Send this request's body to the API unchanged."""
        query_string = urlencode(query or {}).encode()
        return await self._request(method, path, query_string, self.context.body)

    async def _request(self, method: str, path: str, query: bytes = b"", body: bytes = b"") -> Any:
        request = self.context
        headers = {
            name: request.headers[name]
            for name in (b"content-type", b"user-agent")
            if name in request.headers
        }
        if reason := self.form.get(APPROVAL_REASON_FIELD):
            headers[approval_reason.HEADER_NAME.lower().encode()] = approval_reason.encode(reason)
        response = await self._app.dispatch(
            RequestContext(
                services=request.services,
                method=method,
                path=path,
                query=query,
                headers=headers,
                ip=request.ip,
                request_id=request.request_id,
                body=body,
                caller=request.caller,
                is_console=True,
                asks_for_reason=self.is_partial,
            )
        )
        if isinstance(response, Reply) and isinstance(response.body, ApprovalResponse):
            raise RequestHeldError(response.body.approval)
        if not isinstance(response, Reply):
            return msgspec.to_builtins(response)
        is_file = isinstance(response.body, bytes)
        return response if is_file else msgspec.to_builtins(response.body)

    def can_access(self, endpoint: str, field: str | None = None) -> bool:
        """Return whether the admin may call an endpoint, or send one of its restricted fields.

        An endpoint is named by method and path, such as `POST /api/v1/agents/{id}/fund`.
        """
        return self._app.can_call(self.principal, endpoint, field)

    async def require_access(
        self,
        endpoint: str,
        field: str | None = None,
        message: str = "Your role doesn't have access to this",
    ) -> None:
        """Require access to an endpoint.

        A denial is recorded in the audit log, as if the endpoint had been called.
        """
        await self._app.require_access(self.context, endpoint, field, message)

    async def get_file(self, path: str, /, **path_params: str) -> Reply[bytes]:
        """Return a file from the API, with the console's security headers."""
        reply = await self.get(path, **path_params)
        assert isinstance(reply, Reply), "the endpoint does not return a file"
        reply.headers = {**reply.headers, **SECURITY_HEADERS}
        return reply

    async def get_if_allowed(
        self, path: str, query: Query | None = None, /, **path_params: str
    ) -> Any:
        """Return the response, or None if the role has no access; the page omits that part."""
        return (
            await self.get(path, query, **path_params) if self.can_access(f"GET {path}") else None
        )

    def render(
        self, template: str, status: int = 200, *, has_secret: bool = False, **values: Any
    ) -> Reply[bytes]:
        """Render a page or fragment.

        It is compressed unless it has a secret, repeats a form's input, or another site may have
        chosen the query.
        """
        settings, caller = self.context.services.settings, self.context.caller
        flash = None if self.is_partial else session.get_flash(self.context)
        cookie = {} if flash is None else {"Set-Cookie": session.clear_flash(self.context)}
        templates = self._templates[self.translator.language]
        text = templates.get_template(template).render(
            values,
            request=self,
            me=caller,
            can_access=self.can_access,
            path=self.context.path,
            site=self.site,
            query=self.query,
            flash=flash,
            is_partial=self.is_partial,
            csrf=None if caller is None else session.get_csrf_token(self.context, caller),
            environment=settings.environment,
            branding=self.branding,
            default_color=DEFAULT_COLOR,
            preferences=self.preferences,
            get_page_path=lambda public_id: get_page_path(public_id, self.can_access, self.site),
            has_simulators=self._has_simulators,
            currency=settings.currency,
            zone=str(settings.timezone),
            macro_modules={},
        )
        return Reply(
            text.encode(errors="replace"),
            status=status,
            headers={**SECURITY_HEADERS, **cookie, "Vary": "HX-Request"},
            content_type=_HTML_CONTENT_TYPE,
            is_compressible=not has_secret
            and self.context.method == "GET"
            and session.is_own_page(self.context),
        )

    @property
    def navigation(self) -> list[Group]:
        is_available = {
            Feature.SIMULATORS: self._has_simulators,
            Feature.OTHER_BOOKS: self.context.services.book_peers.own_code is not None,
        }
        features = [name for name in Feature if is_available[name]]
        return build_navigation(self.can_access, features, self.context.path)

    @property
    def _has_simulators(self) -> bool:
        """Whether to link to the simulators.

        The simulators can act as any customer and any terminal, so only system administrators may
        use them.
        """
        caller, settings = self.context.caller, self.context.services.settings
        return settings.has_simulators and caller is not None and caller.role == "system_admin"

    def redirect(
        self, path: str, message: str | None = None, cookie: str | None = None
    ) -> Reply[bytes]:
        """Redirect to a page of this site and set `cookie`, or else a flash message if given."""
        headers = dict(SECURITY_HEADERS)
        if self.is_partial:
            headers["HX-Redirect"] = path
        else:
            headers["Location"] = path
        if cookie is None and message is not None:
            cookie = session.set_flash(self.context, self.translate(message))
        if cookie is not None:
            headers["Set-Cookie"] = cookie
        return Reply(
            b"",
            status=200 if self.is_partial else 303,
            headers=headers,
            content_type=_HTML_CONTENT_TYPE,
        )

    def render_continue(self, url: str, cookie: str | None = None) -> Reply[bytes]:
        """Render a page that opens a URL automatically, and set a cookie if given.

        Instead of a redirect: browsers do not send the session's cookie after a redirect that began
        on another site, and the content security policy allows no redirect of a form to one.
        """
        reply = self.render("continue.html", url=url)
        if cookie is not None:
            reply.headers = {**reply.headers, "Set-Cookie": cookie}
        return reply

    def build_next_page_path(self, cursor: str) -> str:
        """Return the path to a list's next page, with the current filters."""
        query = [pair for pair in parse_qsl(self.context.query.decode()) if pair[0] != "cursor"]
        return f"{self.context.path}?{urlencode([*query, ('cursor', cursor)])}"

    @property
    def previous_path(self) -> str:
        """Path to the page that requested the fragment or form; the home page if it is unknown.

        A form on a page of its own, for browsers without scripts, keeps the path in a field.
        """
        if self.is_partial:
            return get_local_path(self.context.get_header(b"hx-current-url") or "", self.site)
        address = self.form.get(_PREVIOUS_FIELD) or self.context.get_header(b"referer") or ""
        return get_local_path(address, self.site)

    def redirect_to_sign_in(self) -> Reply[bytes]:
        """Redirect to the sign-in page, which then leads back to the open page if it is known.

        Form input may be lost after a fragment request, so the sign-in page explains that the
        session has ended.
        """
        query = {}
        if self.is_partial:
            query = {"to": self.previous_path, "ended": "yes"}
        elif self.context.method == "GET" and self.context.path != self.site:
            path = f"{self.context.path}?{self.context.query.decode('latin-1')}"
            query = {"to": get_local_path(path, self.site)}
        address = f"{self.sign_in_path}?{urlencode(query)}" if query else self.sign_in_path
        return self.redirect(address, cookie=session.clear_session(self.context))

    def render_json(self, value: Any) -> Reply[bytes]:
        """Return JSON for a page's script."""
        return Reply(msgspec.json.encode(value), headers=SECURITY_HEADERS)


def _get_default_branding(request: RequestContext) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(
        to_record(build_default_branding(request.services.settings))
    )
    return record


def get_local_path(address: str, home: str = HOME_PATH) -> str:
    """Return a URL's path and query, or `home` if they could lead to another site."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return home
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    is_own = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if is_own and path.isascii() and path.isprintable() else home


def build_path(template: str, names: Mapping[str, str]) -> str:
    """Fill in a path template such as `/api/v1/agents/{id}`.

    Values are percent-encoded, so they cannot change the path's structure.
    """
    path = template
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    if "{" in path:
        raise ApiError(Code.INVALID_REQUEST, "The URL is incomplete. Go back and try again.")
    return path
