"""Pages of the reference: the introduction, and one page per tag."""

from typing import Any, Final

import msgspec
from markupsafe import Markup

from tapgate.sites.guide.contents import API_FOLDER, Document
from tapgate.sites.guide.markdown import ResolveLink, render
from tapgate.sites.guide.reference.operations import Reference, get_page_name
from tapgate.sites.guide.reference.views import PageBuilder, list_tags

#: The introduction is maintained by hand up to this heading.
OPERATIONS_HEADING: Final = "## Operations"


def build_page(
    openapi_document: bytes, document: Document, resolve: ResolveLink
) -> tuple[str, dict[str, Any]] | None:
    """Return the template and the values for a document of the API folder.

    Return None for a tag that the gateway does not have.
    """
    reference = Reference(msgspec.json.decode(openapi_document))
    pages = {f"{API_FOLDER}/{get_page_name(tag)}": tag for tag in reference.tags}
    values: dict[str, Any] = {"tags": list_tags(reference), "slugs": [API_FOLDER, *pages]}
    tag = pages.get(document.slug)
    if tag is not None:
        builder = PageBuilder(reference, tag, resolve)
        return "reference.html", values | {
            "tag": tag,
            "description": reference.tags[tag],
            "operations": builder.list_operations(),
            "objects": builder.list_objects(),
        }
    if document.slug != API_FOLDER:
        return None
    introduction = render(document.read().partition(f"\n{OPERATIONS_HEADING}\n")[0], resolve)
    first_tag = next(iter(reference.tags))
    return "reference_index.html", values | {
        "tag": None,
        "body": Markup(introduction.html),  # noqa: S704 - the renderer escapes text
        "first": PageBuilder(reference, first_tag, resolve).build_first_operation(),
    }
