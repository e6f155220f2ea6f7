"""The docs page: the interface to read and to try out."""

from typing import Final

from tapgate.edge.packaged_files import PackagedFiles

#: The page runs its own script and talks to its own origin, nothing else.
_CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

serve_docs_file = PackagedFiles(
    "tapgate.edge", "docs_page", {"Content-Security-Policy": _CONTENT_SECURITY_POLICY}
).serve
