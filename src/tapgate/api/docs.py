"""Interactive API documentation page (Swagger UI)."""

from typing import Final

from tapgate.api.packaged_files import PackagedFiles

#: Allow scripts, styles, images and requests only from the page's own origin, and `data:` images.
_CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

serve_docs_file = PackagedFiles(
    "tapgate.api", "docs_page", {"Content-Security-Policy": _CONTENT_SECURITY_POLICY}
).serve
