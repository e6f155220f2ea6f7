"""Guide site. Pages are public, and rendered on first use."""

import difflib
from collections.abc import Mapping, Sequence
from functools import cache, cached_property, lru_cache, partial
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tapgate import VERSION
from tapgate.http.api.app import App
from tapgate.http.api.packaged_files import PackagedFiles
from tapgate.http.api.request_context import RequestContext
from tapgate.http.compression import CompressedReply
from tapgate.http.endpoint import Reply
from tapgate.http.rate_limits.throttle import build_rate_limit_error
from tapgate.http.rate_limits.token_buckets import RateLimit
from tapgate.runtime.client_addresses import get_address_key
from tapgate.runtime.thread_pool import BoundedThreadPool
from tapgate.sites.guide.contents import (
    API_FOLDER,
    DECISIONS,
    FILE_TYPES,
    LANGUAGE_NAMES,
    Contents,
    Document,
)
from tapgate.sites.guide.search import MAX_QUERY_LENGTH, SearchIndex
from tapgate_client.errors import ApiError, Code

PREFIX: Final = "/guide"
REFERENCE_PATH: Final = f"{PREFIX}/{API_FOLDER}"
_PACKAGE: Final = "tapgate.sites.guide"
_MAX_BODY_BYTES: Final = 1024
_HTML: Final = "text/html; charset=utf-8"
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # an upgrade takes effect immediately
}
#: Searches per address. A search costs much more CPU time than a page.
SEARCH_RATE_LIMIT: Final = RateLimit(10, 30)
#: Assets that the guide shares with the console, which may not be reachable from outside.
_SHARED_ASSETS: Final = frozenset({"palette.css", "inter-latin-wght-normal.woff2", "mark.svg"})


class ReferenceSource(NamedTuple):
    """What the pages of the API reference show about the running gateway."""

    openapi_document: bytes
    has_sandbox: bool


class GuideSite:
    """Guide of one process; implements `tapgate.http.api.app.Site`."""

    prefix = PREFIX

    def __init__(self) -> None:
        self._assets = PackagedFiles(_PACKAGE, "assets", _HEADERS)
        self._shared_assets = PackagedFiles("tapgate.sites.console", "assets", _HEADERS)
        self.replies: dict[str, CompressedReply] = {}
        # Rendering costs more than a rate limit saves by rejecting a request.
        self._render_error_page = lru_cache(maxsize=32)(self._render_error)
        # One thread, because rendering a long document takes CPU time that payments need too.
        self._threads = BoundedThreadPool("guide pages", threads=1, max_pending=50)

    def get_route(self, path: str) -> str:
        return self.prefix

    async def authorize(self, app: App, request: RequestContext) -> int:
        await app.charge_address(request)
        return _MAX_BODY_BYTES

    async def respond(self, app: App, request: RequestContext) -> Reply[bytes]:
        try:
            if request.method not in ("GET", "HEAD"):
                raise ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
            return await self._get_reply(app, request)
        except ApiError as error:
            return self.render_error(app, request, error)

    def render_error(self, app: App, request: RequestContext, error: ApiError) -> Reply[bytes]:
        return Reply(
            self._render_error_page(error.status, error.message),
            status=error.status,
            headers={**error.headers, **_HEADERS},
            content_type=_HTML,
        )

    def _render_error(self, status: int, message: str | None) -> bytes:
        body = self._render_page("error.html", status=status, message=message).body
        assert isinstance(body, bytes)
        return body

    async def _get_reply(self, app: App, request: RequestContext) -> Reply[bytes]:
        path = request.path.removeprefix(PREFIX).removeprefix("/")
        folder, _, name = path.partition("/")
        if folder == "assets":
            assets = self._shared_assets if name in _SHARED_ASSETS else self._assets
            return await assets.serve(request, name)
        if path == "search":
            return await self._search(request)
        reply = self.replies.get(path)
        if reply is None:
            source = None
            if path.partition("/")[0] == API_FOLDER:
                source = ReferenceSource(
                    await app.openapi_document.read(),
                    has_sandbox=request.services.settings.has_simulators,
                )
            built = await self._threads.run(self.build_reply, path, source)
            reply = self.replies.get(path)
            if reply is None:
                return built
        return reply.select(request)

    def build_reply(self, path: str, source: ReferenceSource | None = None) -> Reply[bytes]:
        """Return the page or file at a path, and cache it. Other paths are not cached.

        `source` makes the documents of the API folder pages of the reference.
        """
        if path in self.contents.by_slug:
            document = self.contents.by_slug[path]
            if source is None:
                reply = self._render_document(document)
            else:
                reply = self._render_reference(document, source)
        elif path in self.contents.files:
            reply = Reply(
                self.contents.files[path].read_bytes(),
                content_type=FILE_TYPES[PurePosixPath(path).suffix],
            )
        else:
            return self._render_not_found(path)
        assert isinstance(reply.body, bytes)
        etag = f'"{sha256(reply.body).hexdigest()[:32]}"'
        reply.headers = {**_HEADERS, "ETag": etag}
        self.replies[path] = CompressedReply(reply)
        return reply

    def _render_document(self, document: Document) -> Reply[bytes]:
        from tapgate.sites.guide.markdown import render  # noqa: PLC0415 - most processes do not need it

        rendered = render(document.read(), partial(self._resolve, document))
        return self._render_page(
            "document.html",
            document=document,
            body=Markup(rendered.html),  # noqa: S704 - the renderer escapes text
            headings=[heading for heading in rendered.headings if heading.level in (2, 3)],
            languages=self.contents.list_translations(document),
            language_names=LANGUAGE_NAMES,
            **_find_neighbors(document, self.contents.documents),
        )

    def _render_reference(self, document: Document, source: ReferenceSource) -> Reply[bytes]:
        from tapgate.sites.guide.reference import pages  # noqa: PLC0415 - as above

        page = pages.build_page(source.openapi_document, document, partial(self._resolve, document))
        if page is None:
            return self._render_document(document)
        template, values = page
        slugs = [slug for slug in values["slugs"] if slug in self.contents.by_slug]
        return self._render_page(
            template,
            document=document,
            has_sandbox=source.has_sandbox,
            **values,
            **_find_neighbors(document, [self.contents.by_slug[slug] for slug in slugs]),
        )

    def _resolve(self, document: Document, link: str) -> str | None:
        """Return the URL for a link in a document, or None for files outside the guide."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
            return link
        target = document.join(parts.path)
        anchor = f"#{parts.fragment}" if parts.fragment else ""
        if (linked := self.contents.by_source.get(target)) is not None:
            return linked.url + anchor
        if str(target) in self.contents.files:
            return f"{PREFIX}/{target}"
        return None

    def _render_not_found(self, path: str) -> Reply[bytes]:
        """Redirect other spellings of a document's path, and suggest similar documents."""
        plain = unquote(path).strip("/").lower().removesuffix(".md")
        plain = plain.removesuffix("/readme").removesuffix("/index")
        plain = "" if plain in ("readme", "index") else plain
        if plain != path and (document := self.contents.by_slug.get(plain)) is not None:
            return Reply(b"", status=308, headers={"Location": document.url}, content_type=_HTML)
        close = difflib.get_close_matches(plain[:MAX_QUERY_LENGTH], self.contents.by_slug, n=5)
        words = " ".join(plain.replace("-", " ").replace("/", " ").split())[:MAX_QUERY_LENGTH]
        return self._render_page(
            "not_found.html",
            status=404,
            query=words,
            similar=[self.contents.by_slug[slug] for slug in close],
        )

    async def _search(self, request: RequestContext) -> Reply[bytes]:
        key = f"guide search:{get_address_key(request.ip)}"
        result = await request.services.throttle.take(key, SEARCH_RATE_LIMIT)
        if not result.is_allowed:
            raise build_rate_limit_error(result)
        values = parse_qs(request.query.decode("latin-1"), errors="replace", max_num_fields=8)
        query = " ".join(values.get("q", ()))[:MAX_QUERY_LENGTH]
        template = "results.html" if "fragment" in values else "search.html"
        return await self._threads.run(self._render_results, template, query)

    def _render_results(self, template: str, query: str) -> Reply[bytes]:
        return self._render_page(template, query=query, results=self._index.search(query))

    def _render_page(self, template: str, *, status: int = 200, **values: Any) -> Reply[bytes]:
        html = (
            _build_environment()
            .get_template(template)
            .render(
                sections=self.contents.list_sections(),
                version=VERSION,
                **{"document": None, "query": "", **values},
            )
        )
        return Reply(
            html.encode(),
            status=status,
            headers=_HEADERS,
            content_type=_HTML,
            is_compressible=True,  # public: no secret can be in it
        )

    @cached_property
    def contents(self) -> Contents:
        return Contents()

    @cached_property
    def _index(self) -> SearchIndex:
        return SearchIndex(self.contents.documents)


def _find_neighbors(document: Document, listed: Sequence[Document]) -> dict[str, Any]:
    """Return the previous and the next document. Readers are not led to the decisions."""
    is_decision = document.section == DECISIONS
    listed = [
        each
        for each in listed
        if (each.section == DECISIONS) == is_decision and each.language == document.language
    ]
    place = listed.index(document)
    return {
        "previous": listed[place - 1] if place else None,
        "following": listed[place + 1] if place + 1 < len(listed) else None,
    }


@cache
def _build_environment() -> Environment:
    return Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
