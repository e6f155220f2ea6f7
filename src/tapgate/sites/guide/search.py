"""Full-text search in the sections of all documents."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from tapgate.sites.guide.anchors import AnchorRegistry
from tapgate.sites.guide.contents import Document

MAX_QUERY_LENGTH: Final = 100
_MAX_WORDS: Final = 6
#: Shorter words are in nearly every section, and are ignored if there are others.
_MAX_IGNORED_LENGTH: Final = 2
_MAX_SHORT_WORDS: Final = 2
_MAX_RESULTS: Final = 20
_MAX_RESULTS_PER_DOCUMENT: Final = 3
_EXCERPT_LENGTH: Final = 160

#: Navigation sections that come before or after others with the same words.
_SECTION_WEIGHTS: Final = {
    "Guides": 1.5,
    "Handbooks": 1.3,
    "Runbooks": 1.5,
    "Internals": 0.7,
    "Assurance": 0.7,
    "More": 0.7,
    "Decisions": 0.3,
}
_HEADING: Final = re.compile(r"^(#{1,6}) (.+)$")
_MARKUP: Final = re.compile(r"<!--.*?-->|\]\([^)]*\)|^\s*[-#:| ]+$|[`*|\[]|^> ", re.MULTILINE)
_SPACES: Final = re.compile(r"\s+")


class SearchResult(NamedTuple):
    title: str
    heading: str
    section: str
    url: str
    excerpt: Markup


class _Part(NamedTuple):
    """Text between two headings in a document."""

    document: Document
    heading: str
    anchor: str
    text: str
    lower_title: str
    lower_heading: str
    lower_text: str

    @property
    def url(self) -> str:
        return f"{self.document.url}#{self.anchor}" if self.anchor else self.document.url


class SearchIndex:
    """Document index. It is built once, and is as large as the documents."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._parts = [part for document in documents for part in _split(document)]

    def search(self, query: str) -> list[SearchResult]:
        """Return the sections that contain all query words, best matches first."""
        words = _SPACES.split(query[:MAX_QUERY_LENGTH].strip().lower())[:_MAX_WORDS]
        if words == [""]:
            return []
        words = [word for word in words if len(word) > _MAX_IGNORED_LENGTH] or words[
            :_MAX_SHORT_WORDS
        ]
        scored = [(score, part) for part in self._parts if (score := _score(part, words))]
        scored.sort(key=lambda item: -item[0])
        results: list[SearchResult] = []
        counts: dict[str, int] = {}
        for _, part in scored:
            slug = part.document.slug
            counts[slug] = counts.get(slug, 0) + 1
            if counts[slug] <= _MAX_RESULTS_PER_DOCUMENT:
                results.append(_build_result(part, words))
            if len(results) == _MAX_RESULTS:
                break
        return results


def _split(document: Document) -> Iterable[_Part]:
    anchors, heading, anchor, lines = AnchorRegistry(), "", "", list[str]()
    in_code = False
    for line in document.read().splitlines():
        in_code ^= line.startswith("```")
        found = None if in_code else _HEADING.match(line)
        if found is None:
            lines.append(line)
            continue
        if heading:
            yield _build_part(document, heading, anchor, lines)
        lines.clear()
        heading = _clean(found[2])
        anchor = anchors.add(heading)
        if found[1] == "#":
            anchor = ""
    yield _build_part(document, heading or document.title, anchor, lines)


def _build_part(document: Document, heading: str, anchor: str, lines: list[str]) -> _Part:
    text = _clean("\n".join(lines))
    return _Part(
        document, heading, anchor, text, document.title.lower(), heading.lower(), text.lower()
    )


def _clean(text: str) -> str:
    return _SPACES.sub(" ", _MARKUP.sub(" ", text)).strip()


def _score(part: _Part, words: list[str]) -> float:
    _, _, _, _, title, heading, text = part
    score = 0.0
    for word in words:
        points = 4.0 * (word in title) + 6.0 * (word in heading) + min(text.count(word), 4)
        if not points:
            return 0
        score += points
    phrase = " ".join(words)
    score += 20 * (phrase in (title, heading)) + 4 * (phrase in heading) + 2 * (phrase in text)
    if not part.anchor:
        score += 3.0 * (words[0] in title)
    return score * _SECTION_WEIGHTS.get(part.document.section, 1)


def _build_result(part: _Part, words: list[str]) -> SearchResult:
    document = part.document
    return SearchResult(
        title=document.title,
        heading="" if part.heading == document.title else part.heading,
        section=document.section,
        url=part.url,
        excerpt=_render_excerpt(part, words),
    )


def _render_excerpt(part: _Part, words: list[str]) -> Markup:
    text, lower = part.text, part.lower_text
    first = min((place for word in words if (place := lower.find(word)) >= 0), default=0)
    start = max(0, first - 50)
    excerpt = text[start : start + _EXCERPT_LENGTH]
    pattern = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)
    parts = list[str]()
    end = 0
    for match in pattern.finditer(excerpt):
        parts += [str(escape(excerpt[end : match.start()])), f"<mark>{escape(match[0])}</mark>"]
        end = match.end()
    parts.append(str(escape(excerpt[end:])))
    before, after = "…" if start else "", "…" if start + _EXCERPT_LENGTH < len(text) else ""
    return Markup(before + "".join(parts) + after)  # noqa: S704 - its parts are escaped
