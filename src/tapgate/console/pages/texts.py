"""Texts of scripts in languages other than English."""

from typing import Final

import msgspec

from tapgate.console.page_request import SECURITY_HEADERS, PageRequest
from tapgate.console.site import Pages
from tapgate.console.translation.translator import Language, get_translator
from tapgate.errors import ApiError, Code
from tapgate.http.endpoint import Reply

pages = Pages()

_CATALOG: Final = "scripts.toml"


@pages.get("/console/texts/{file}", public=True)
async def serve_texts(request: PageRequest, file: str) -> Reply[bytes]:
    """Return a script with the texts of a language, such as `fr.js`."""
    name = file.removesuffix(".js")
    if name not in tuple(Language):
        raise ApiError(Code.NOT_FOUND)
    texts = get_translator(Language(name)).catalogs.get(_CATALOG, {})
    return Reply(
        b"window.consoleTexts = " + msgspec.json.encode(texts) + b";\n",
        headers={**SECURITY_HEADERS, "Cache-Control": "no-cache"},
        content_type="text/javascript; charset=utf-8",
    )
