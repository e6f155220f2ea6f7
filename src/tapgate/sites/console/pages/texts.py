"""Script texts in languages other than English."""

from collections.abc import Mapping
from typing import Final

import msgspec

from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import SECURITY_HEADERS, PageRequest
from tapgate.sites.console.site import Pages
from tapgate.sites.console.translation.translator import Language, Translator, get_translator
from tapgate_client.errors import ApiError, Code

pages = Pages()

_CATALOG: Final = "scripts.toml"


@pages.get("/console/texts/{file}", public=True)
async def serve_texts(request: PageRequest, file: str) -> Reply[bytes]:
    """Return a script with a language's texts, such as `fr.js`."""
    return render_texts(get_file_translator(file).catalogs.get(_CATALOG, {}))


def get_file_translator(file: str) -> Translator:
    name = file.removesuffix(".js")
    if name not in tuple(Language):
        raise ApiError(Code.NOT_FOUND)
    return get_translator(Language(name))


def render_texts(texts: Mapping[str, str]) -> Reply[bytes]:
    return Reply(
        b"window.consoleTexts = " + msgspec.json.encode(texts) + b";\n",
        headers={**SECURITY_HEADERS, "Cache-Control": "no-cache"},
        content_type="text/javascript; charset=utf-8",
        is_compressible=True,
    )
