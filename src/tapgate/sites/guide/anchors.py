"""Heading anchors, as GitHub generates them."""

import re


class AnchorRegistry:
    """Heading anchors on one page."""

    def __init__(self, *headings: str) -> None:
        self._slug_counts: dict[str, int] = {}
        for heading in headings:
            self.add(heading)

    def add(self, heading: str) -> str:
        """Return a heading's anchor. Call it once per heading, in page order."""
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = self._slug_counts.get(slug, 0)
        self._slug_counts[slug] = count + 1
        return f"{slug}-{count}" if count else slug
