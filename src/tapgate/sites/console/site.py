"""Site of server-rendered pages: authentication, routing and error pages."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

import structlog
from jinja2 import Environment

from tapgate.auth.rate_limit_cost import NO_COST
from tapgate.http.api import approval_reason
from tapgate.http.api.app import App
from tapgate.http.api.packaged_files import PackagedFiles
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import MEBIBYTE, Reply
from tapgate.http.rate_limits.address_costs import LookupCost
from tapgate.http.router import Router
from tapgate.runtime import logs
from tapgate.sites.console import session, step_up
from tapgate.sites.console.page_request import (
    CONSOLE,
    PageRequest,
    RequestHeldError,
)
from tapgate.sites.console.translation.translator import Language
from tapgate_client.errors import ApiError, Code

_MAX_BODY_BYTES: Final = 9 * MEBIBYTE  # a card file, or a picture with its form
_MAX_ANONYMOUS_BODY_BYTES: Final = 16 * 1024

_log = structlog.get_logger()

Handler = Callable[..., Awaitable[Reply[bytes]]]
HandlerT = TypeVar("HandlerT", bound=Handler)


class _PageRoute(NamedTuple):
    method: str
    path: str
    handler: Handler
    is_public: bool


class Pages:
    """Routes of one resource's pages.

    A handler takes the page request, then its path parameters in order.
    """

    def __init__(self) -> None:
        self._routes: list[_PageRoute] = []

    def __iter__(self) -> Iterator[_PageRoute]:
        return iter(self._routes)

    def get(self, path: str, *, public: bool = False) -> Callable[[HandlerT], HandlerT]:
        return self._add_route("GET", path, public=public)

    def post(self, path: str, *, public: bool = False) -> Callable[[HandlerT], HandlerT]:
        """Add a POST route, which accepts only forms from pages of this site.

        Unless the route is public, the form must also carry the session's CSRF token.
        """
        return self._add_route("POST", path, public=public)

    def _add_route(self, method: str, path: str, *, public: bool) -> Callable[[HandlerT], HandlerT]:
        def add(handler: HandlerT) -> HandlerT:
            self._routes.append(_PageRoute(method, path, handler, public))
            return handler

        return add


class PageSite:
    """Site with pages and assets; implements `tapgate.http.api.app.Site`."""

    def __init__(
        self,
        prefix: str,
        pages: Iterable[_PageRoute],
        templates: Mapping[Language, Environment],
        assets: PackagedFiles,
        *,
        site: str = CONSOLE,
    ) -> None:
        self.prefix = prefix
        self._site = site
        self.templates = templates
        self._assets = assets
        self._router: Router[_PageRoute] = Router()
        for page in pages:
            self._router.add(page.method, page.path, page)

    def get_route(self, path: str) -> str:
        methods, _ = self._router.find(path) or ({}, [])
        return next((page.path for page in methods.values()), self.prefix)

    async def authorize(self, app: App, request: RequestContext) -> int:
        if request.caller is not None:
            request.caller = caller = await session.authenticate(request, NO_COST)
        else:
            cost = LookupCost(request)
            request.caller = caller = await session.authenticate(request, cost)
            if caller is None:
                await cost.take()
            else:
                await app.enforce_rate_limit(request, caller.rate_limit_key)
        return _MAX_ANONYMOUS_BODY_BYTES if caller is None else _MAX_BODY_BYTES

    async def respond(self, app: App, context: RequestContext) -> Reply[bytes]:
        try:
            asset = await self._get_asset(context)
            if asset is not None:
                return asset
            request = PageRequest(app, context, self.templates, self._site)
        except ApiError as error:
            return self.render_error(app, context, error)
        try:
            return await self._dispatch(request)
        except ApiError as error:
            return _render_error(request, error)
        except RequestHeldError as held:
            path = f"{self._site}/approvals/{held.approval.id}"
            return request.redirect(path, "Sent for approval. Nothing was changed yet.")
        except Exception as error:
            _log.error(
                "console.page_failed",
                request_id=context.request_id,
                failure=logs.describe_exception(error),
            )
            return _render_error(request, ApiError(Code.INTERNAL_ERROR))

    def render_error(self, app: App, context: RequestContext, error: ApiError) -> Reply[bytes]:
        """Render an error that occurred before the request was routed."""
        request = PageRequest(app, _clear_query(context), self.templates, self._site)
        if (
            error.code is Code.PAYLOAD_TOO_LARGE
            and context.caller is None
            and context.path != request.sign_in_path
        ):
            # Only signed-in pages have forms this large, so the session must have ended.
            return request.redirect_to_sign_in()
        return _render_error(request, error)

    async def _get_asset(self, request: RequestContext) -> Reply[bytes] | None:
        start = f"{self.prefix}/assets/"
        if request.method not in ("GET", "HEAD") or not request.path.startswith(start):
            return None
        return await self._assets.serve(request, request.path.removeprefix(start))

    async def _dispatch(self, request: PageRequest) -> Reply[bytes]:
        context = request.context
        await request.load_preferences()
        await request.load_branding()
        methods, path_args = self._router.find(context.path) or ({}, [])
        page = methods.get("GET" if context.method == "HEAD" else context.method)
        is_public = page is not None and page.is_public
        if context.caller is not None and not is_public and request.own_site != self._site:
            return request.redirect(request.own_site)
        if page is None:
            raise _build_no_page_error(methods)
        if page.method != "GET":
            session.require_same_origin(context)
            await request.read_form()
        if not page.is_public:
            if context.caller is None:
                return request.redirect_to_sign_in()
            if page.method != "GET":
                session.require_csrf_token(
                    context, context.caller, request.form.get(session.CSRF_FIELD)
                )
                await step_up.verify_submitted(request)
            await request.load_navigation()
        return await page.handler(request, *path_args)


def _is_enrollment_missing(error: ApiError) -> bool:
    """Return whether a session that may only enroll a second factor opened another page."""
    return error.code is Code.FORBIDDEN and (error.details or {}).get("required") == [
        "second_factor"
    ]


def _build_no_page_error(methods: Mapping[str, _PageRoute]) -> ApiError:
    if not methods:
        return ApiError(Code.NOT_FOUND)
    allowed = sorted({*methods, *(["HEAD"] if "GET" in methods else [])})
    return ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(allowed)})


def _clear_query(request: RequestContext) -> RequestContext:
    request.query = b""
    return request


def _render_error(request: PageRequest, error: ApiError) -> Reply[bytes]:
    if error.code is Code.UNAUTHORIZED:
        return request.redirect_to_sign_in()
    caller = request.context.caller
    if caller is not None and caller.enroll_only and _is_enrollment_missing(error):
        return request.redirect(f"{request.own_site}/account")
    if step_up.is_required(error) and request.is_partial and request.context.method == "POST":
        return step_up.render_prompt(request, error)
    if approval_reason.is_missing(error) and request.is_partial:
        return step_up.render_reason_prompt(request, error)
    template = "problem.html" if request.is_partial else "error.html"
    reply = request.render(template, error.status, error=error)
    reply.headers = {**error.headers, **reply.headers}
    return reply
