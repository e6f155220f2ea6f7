"""A site of pages: who may come in, which page it is, and what is shown when something is wrong."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

import structlog
from jinja2 import Environment

from tapgate.console import session
from tapgate.console.visit import SIGN_IN, Visit
from tapgate.credentials.charges import NO_CHARGE
from tapgate.edge.charges import LookupCharge
from tapgate.edge.endpoint import MEBIBYTE, Reply
from tapgate.edge.packaged_files import PackagedFiles
from tapgate.edge.request_context import RequestContext
from tapgate.edge.router import Router
from tapgate.edge.site import InternalApi
from tapgate.errors import ApiError, Code
from tapgate.service import logs

_LARGEST_BODY: Final = 9 * MEBIBYTE  # a file of cards or a picture, and the form around it
_LARGEST_OF_A_STRANGER: Final = 16 * 1024

_log = structlog.get_logger()

Handler = Callable[..., Awaitable[Reply[bytes]]]
H = TypeVar("H", bound=Handler)


class _Page(NamedTuple):
    method: str
    path: str
    handler: Handler
    public: bool


class Pages:
    """The pages of one noun. A handler takes the visit, then the parts of its path in order."""

    def __init__(self) -> None:
        self._declared: list[_Page] = []

    def __iter__(self) -> Iterator[_Page]:
        return iter(self._declared)

    def get(self, path: str, *, public: bool = False) -> Callable[[H], H]:
        return self._declare("GET", path, public=public)

    def post(self, path: str, *, public: bool = False) -> Callable[[H], H]:
        """Only for what comes from a page of this site and this session."""
        return self._declare("POST", path, public=public)

    def _declare(self, method: str, path: str, *, public: bool) -> Callable[[H], H]:
        def add(handler: H) -> H:
            self._declared.append(_Page(method, path, handler, public))
            return handler

        return add


class PageSite:
    """Is a `tapgate.edge.site.Site`."""

    def __init__(
        self, prefix: str, pages: Iterable[_Page], templates: Environment, assets: PackagedFiles
    ) -> None:
        self.prefix = prefix
        self._templates = templates
        self._assets = assets
        self._router: Router[_Page] = Router()
        for page in pages:
            self._router.add(page.method, page.path, page)

    async def authorize(self, inside: InternalApi, call: RequestContext) -> int:
        if call.caller is not None:
            call.caller = caller = await session.signed_in(call, NO_CHARGE)
        else:
            charge = LookupCharge(call)
            call.caller = caller = await session.signed_in(call, charge)
            if caller is None:
                await charge.charge()
            else:
                await inside.enforce_rate_limit(call, caller.rate_limit_key)
        return _LARGEST_OF_A_STRANGER if caller is None else _LARGEST_BODY

    async def respond(self, inside: InternalApi, call: RequestContext) -> Reply[bytes]:
        try:
            asset = self._asset(call)
            if asset is not None:
                return asset
            visit = Visit(inside, call, self._templates)
        except ApiError as error:
            return self.render_error(inside, call, error)
        try:
            return await self._shown(visit)
        except ApiError as error:
            return _refused(visit, error)
        except Exception as problem:
            _log.error(
                "page.failed", request_id=call.request_id, failure=logs.describe_exception(problem)
            )
            return _refused(visit, ApiError(Code.INTERNAL_ERROR))

    def render_error(
        self, inside: InternalApi, call: RequestContext, error: ApiError
    ) -> Reply[bytes]:
        """Before anything of the request was looked at."""
        visit = Visit(inside, _without_query(call), self._templates)
        if error.code is Code.PAYLOAD_TOO_LARGE and call.caller is None and call.path != SIGN_IN:
            # No stranger has a form that large: it was begun in a session that has ended.
            return visit.sign_in()
        return _refused(visit, error)

    def _asset(self, call: RequestContext) -> Reply[bytes] | None:
        start = f"{self.prefix}/assets/"
        if call.method not in ("GET", "HEAD") or not call.path.startswith(start):
            return None
        return self._assets.serve(call, call.path.removeprefix(start))

    async def _shown(self, visit: Visit) -> Reply[bytes]:
        call = visit.call
        methods, names = self._router.find(call.path) or ({}, [])
        page = methods.get("GET" if call.method == "HEAD" else call.method)
        if page is None:
            raise _no_page(methods)
        if page.method != "GET":
            session.require_own_page(call)
            await visit.read_form()
        if not page.public:
            if call.caller is None:
                return visit.sign_in()
            if page.method != "GET":
                session.require_csrf(call, call.caller, visit.form.get(session.CSRF_FIELD))
        return await page.handler(visit, *names)


def _no_page(methods: Mapping[str, _Page]) -> ApiError:
    if not methods:
        return ApiError(Code.NOT_FOUND)
    allowed = sorted({*methods, *(["HEAD"] if "GET" in methods else [])})
    return ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(allowed)})


def _without_query(call: RequestContext) -> RequestContext:
    call.query = b""
    return call


def _refused(visit: Visit, error: ApiError) -> Reply[bytes]:
    if error.code is Code.UNAUTHORIZED:
        return visit.sign_in()
    template = "problem.html" if visit.is_part else "error.html"
    reply = visit.page(template, error.status, error=error)
    reply.headers = {**error.headers, **reply.headers}
    return reply
