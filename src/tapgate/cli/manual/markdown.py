"""Markdown formatting for the API reference."""

import re
from collections.abc import Iterable, Sequence


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_escape_cell(cell) for cell in line)} |" for line in lines)


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def format_code(value: object) -> str:
    """Format a value as inline code, with booleans as in JSON."""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def format_link(text: str, target: str) -> str:
    return f"[{text}]({target})"


def format_code_block(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"


class AnchorRegistry:
    """Anchors of the headings of one page, as GitHub generates them."""

    def __init__(self) -> None:
        self._slug_counts: dict[str, int] = {}

    def add(self, heading: str) -> str:
        """Return the anchor of a heading. Call it once per heading, in page order."""
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = self._slug_counts.get(slug, 0)
        self._slug_counts[slug] = count + 1
        return f"{slug}-{count}" if count else slug
