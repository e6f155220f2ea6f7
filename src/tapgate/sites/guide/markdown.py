"""Rendering of Markdown documents as HTML that a strict content security policy allows."""

from collections.abc import Callable, MutableMapping, Sequence
from functools import cache
from html import escape
from typing import Any, Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from tapgate.sites.guide.anchors import AnchorRegistry

_TASK: Final = "[ ] "
#: More columns do not fit beside the navigation without breaking names.
_MIN_WIDE_COLUMNS: Final = 5
_LEXERS: Final = {
    "html": "html",
    "http": "http",
    "ini": "ini",
    "javascript": "javascript",
    "js": "javascript",
    "json": "json",
    "python": "python",
    "sh": "bash",
    "sql": "postgresql",
    "ts": "typescript",
    "yaml": "yaml",
}

#: Languages that examples are written in, side by side.
TAB_LABELS: Final = {"sh": "curl", "python": "Python", "ts": "TypeScript"}

#: Returns a link's URL, or None to show its text only.
ResolveLink = Callable[[str], str | None]


class Heading(NamedTuple):
    level: int
    text: str
    anchor: str


class RenderedDocument(NamedTuple):
    html: str
    headings: list[Heading]


class _Renderer(RendererHTML):
    """Renderer of one document; `env` holds its links and headings."""

    def heading_open(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        token = tokens[index]
        text = get_plain_text(tokens[index + 1])
        anchor = env["anchors"].add(text)
        env["headings"].append(Heading(int(token.tag[1]), text, anchor))
        return f'<{token.tag} id="{escape(anchor)}">'

    def heading_close(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        tag, heading = tokens[index].tag, env["headings"][-1]
        if tag == "h1":
            return "</h1>\n"
        label = escape(f"Link to {heading.text}")
        link = f'<a class="anchor" href="#{escape(heading.anchor)}" aria-label="{label}">#</a>'
        return f" {link}</{tag}>\n"

    def link_open(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        url = env["resolve"](str(tokens[index].attrs["href"]))
        if url is None:
            return "<span>"
        outside = ' rel="noreferrer"' if url.startswith("http") else ""
        return f'<a href="{escape(url)}"{outside}>'

    def link_close(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        opening = next(
            token for token in reversed(tokens[:index]) if token.type == "link_open"
        )  # links do not nest
        return "</a>" if env["resolve"](str(opening.attrs["href"])) else "</span>"

    def image(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        token = tokens[index]
        url = env["resolve"](str(token.attrs["src"]))
        alt = escape(token.content)
        return f'<img src="{escape(url)}" alt="{alt}" loading="lazy">' if url else alt

    def table_open(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        """A table with many columns is a list of records, whose values have labels."""
        heads = _list_heads(tokens, index)
        env["labels"], wide = None, ""
        if len(heads) >= _MIN_WIDE_COLUMNS:
            env["labels"], wide = heads, " wide"
        return f'<div class="table{wide}" tabindex="0" role="group" aria-label="Table"><table>\n'

    def tr_open(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        env["column"] = 0
        return "<tr>\n"

    def td_open(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        labels, column = env["labels"], env["column"]
        env["column"] += 1
        return f'<td data-label="{escape(labels[column])}">' if labels else "<td>"

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"

    def fence(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        """Render code. Adjacent blocks in different languages become tabs."""
        language = _get_language(tokens[index])
        label = f' data-language="{escape(language)}"' if language else ""
        code = highlight_code(tokens[index].content, language)
        block = f'<div class="code"{label}><pre tabindex="0"><code>{code}</code></pre></div>\n'
        languages = _list_adjacent_languages(tokens, index)
        if language not in languages:
            return block
        if language == languages[0]:
            env["tabs"] = env.get("tabs", 0) + 1
            block = _open_tabs(languages, f"example-{env['tabs']}") + block
        return f"{block}</div>\n" if language == languages[-1] else block

    def code_block(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        return self.fence(tokens, index, options, env)

    def text(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        content = tokens[index].content
        if index == 0 and content.startswith(_TASK):
            content = escape(content.removeprefix(_TASK))
            return f'<input type="checkbox" class="task" aria-label="Done"> {content}'
        return escape(content)

    def html_block(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        """Drop comments. Documents have no other HTML, and it would be shown as text."""
        content = tokens[index].content.strip()
        return "" if content.startswith("<!--") else f"<p>{escape(content)}</p>\n"

    def html_inline(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        content = tokens[index].content
        return "" if content.startswith("<!--") else escape(content)


def _list_heads(tokens: Sequence[Token], index: int) -> list[str]:
    """Return the column heads of the table that opens at `index`."""
    heads = []
    for position in range(index, len(tokens)):
        if tokens[position].type == "thead_close":
            break
        if tokens[position].type == "th_open":
            heads.append(get_plain_text(tokens[position + 1]))
    return heads


def _get_language(token: Token) -> str:
    return token.info.strip().partition(" ")[0]


def _list_adjacent_languages(tokens: Sequence[Token], index: int) -> list[str]:
    """Return the languages of the tabs that a block belongs to, or nothing for a single block."""
    first = index
    while first > 0 and _has_tab(tokens[first - 1]):
        first -= 1
    last = index
    while last < len(tokens) and _has_tab(tokens[last]):
        last += 1
    languages = [_get_language(token) for token in tokens[first:last]]
    return languages if len(languages) > 1 and len({*languages}) == len(languages) else []


def _has_tab(token: Token) -> bool:
    return token.type == "fence" and _get_language(token) in TAB_LABELS


def _open_tabs(languages: Sequence[str], name: str) -> str:
    tabs = "".join(
        f'<label><input type="radio" name="{name}" value="{language}"'
        f"{' checked' if language == languages[0] else ''}>"
        f"<span>{TAB_LABELS[language]}</span></label>"
        for language in languages
    )
    return (
        '<div class="tabs"><div class="tab-list" role="radiogroup" aria-label="Language">'
        f"{tabs}</div>\n"
    )


@cache
def _build_parser() -> MarkdownIt:
    return MarkdownIt("commonmark", renderer_cls=_Renderer).enable("table")


@cache
def _get_lexer(language: str) -> Lexer:
    lexer: Lexer = get_lexer_by_name(_LEXERS[language])
    return lexer


def highlight_code(text: str, language: str) -> str:
    """Return code as HTML, with its parts in spans."""
    if language not in _LEXERS:
        return escape(text)
    code: str = highlight(text, _get_lexer(language), HtmlFormatter(nowrap=True))
    return code


def get_plain_text(inline: Token) -> str:
    """Return an inline token's text without its markup."""
    parts = (item.content for item in inline.children or () if item.type in ("text", "code_inline"))
    return "".join(parts)


def render(text: str, resolve: ResolveLink) -> RenderedDocument:
    env: dict[str, Any] = {"anchors": AnchorRegistry(), "headings": [], "resolve": resolve}
    html = _build_parser().render(text, env)
    return RenderedDocument(html, env["headings"])


def render_inline(text: str, resolve: ResolveLink) -> str:
    """Return a text without paragraphs as HTML."""
    html: str = _build_parser().renderInline(text, {"resolve": resolve})
    return html
