"""Guide contents: its documents, and their order in the navigation."""

import posixpath
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Final, NamedTuple

_PACKAGE: Final = "tapgate.sites.guide"
_DOCUMENTS: Final = "documents"
_INDEX_FILE: Final = "README.md"
_MAX_FOLDER_DEPTH: Final = 2

#: Content types of files that documents link to or embed.
FILE_TYPES: Final = {
    ".png": "image/png",
    ".svg": "image/svg+xml; charset=utf-8",
    ".json": "application/json",
}

#: Last section: reasons for people who work on Tapgate, not for its users.
DECISIONS: Final = "Decisions"
#: Folder of the API reference, whose pages show the operations of the running gateway.
API_FOLDER: Final = "api"

#: Languages of documents, each in its own words.
SOURCE: Final = "en"
TRANSLATIONS: Final = ("fr",)
LANGUAGE_NAMES: Final = {SOURCE: "English", "fr": "Français"}

#: Navigation sections. `folder/*` means the other documents in a folder.
SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Get started": ("", "quick-start", "console", "simulators", "glossary"),
    "Guides": (
        "guides/onboard-a-merchant",
        "guides/accept-a-card",
        "guides/cash-in-app",
        "guides/payroll",
        "guides/chat",
        "guides/refunds",
        "guides/undo",
        "guides/disputes",
        "guides/messages",
        "guides/*",
        "guides/going-live",
    ),
    "Build": (
        "signing",
        "errors",
        "webhooks",
        "payment",
        "cards",
        "messenger",
        "access",
        "owners",
        "sdk",
        "typescript",
        "postman",
        "versioning",
    ),
    "API reference": (API_FOLDER, f"{API_FOLDER}/*"),
    "Handbooks": ("handbooks/*",),
    "Runbooks": ("runbooks/*",),
    "Operate": (
        "running",
        "deploying",
        "settings",
        "high-availability",
        "cluster",
        "scaling",
        "books",
        "upgrading",
        "years",
        "verify-receipt",
        "accounts",
        "approvals",
        "payouts",
        "reconciliation",
        "batches",
        "alerts",
        "logs",
        "audit",
        "retention",
    ),
    "Assurance": ("security", "proof", "failures", "asvs", "inventory"),
    "Internals": ("architecture", "ledger", "benchmarks", "benchmark-details"),
    DECISIONS: ("decisions/*",),
    "More": ("*",),
}


class Document(NamedTuple):
    slug: str  # path below `/guide/`, empty for the start page
    title: str
    section: str
    #: Source path, as links in other documents name it: relative to docs/.
    source: PurePosixPath
    file: Traversable

    @property
    def language(self) -> str:
        """Language of the text. Translations are in a folder with the name of their language."""
        return self.source.parent.name if self.source.parent.name in TRANSLATIONS else SOURCE

    @property
    def label(self) -> str:
        """Title in lists of its section, without the section's name: `Agent`."""
        kind, _, rest = self.title.partition(": ")
        return rest[:1].upper() + rest[1:] if rest and f"{kind}s" == self.section else self.title

    @property
    def url(self) -> str:
        return f"/guide/{self.slug}" if self.slug else "/guide"

    def join(self, target: str) -> PurePosixPath:
        """Return a linked file's path, relative to docs/."""
        return PurePosixPath(posixpath.normpath(self.source.parent / target))

    def read(self) -> str:
        return self.file.read_text(encoding="utf-8")


class Contents:
    """Documents in the order of the navigation, and the files that they embed."""

    def __init__(self) -> None:
        found = dict(_find_files())
        self.files: Mapping[str, Traversable] = {
            str(path): file for path, file in found.items() if path.suffix in FILE_TYPES
        }
        unsorted = {
            _get_slug(path): (path, file) for path, file in found.items() if path.suffix == ".md"
        }
        self.documents: list[Document] = []
        listed = {slug for slugs in SECTIONS.values() for slug in slugs}
        for section, slugs in SECTIONS.items():
            for slug in _expand(slugs, sorted(unsorted.keys() - listed)):
                if slug in unsorted:
                    path, file = unsorted.pop(slug)
                    self.documents.append(
                        Document(slug, _read_title(file, slug), section, path, file)
                    )
        self.by_slug: Mapping[str, Document] = {item.slug: item for item in self.documents}
        self.by_source: Mapping[PurePosixPath, Document] = {
            item.source: item for item in self.documents
        }

    def list_sections(self) -> dict[str, list[Document]]:
        """Return the documents by section. Translations are linked by their originals only."""
        sections: dict[str, list[Document]] = {}
        for document in self.documents:
            if document.language == SOURCE:
                sections.setdefault(document.section, []).append(document)
        return sections

    def list_translations(self, document: Document) -> list[Document]:
        """Return a document in each of its languages, the original first; none if it has one."""
        name, folder = document.source.name, document.source.parent
        folder = folder if document.language == SOURCE else folder.parent
        paths = (folder / name, *(folder / language / name for language in TRANSLATIONS))
        found = [self.by_source[path] for path in paths if path in self.by_source]
        return found if len(found) > 1 else []


def _expand(slugs: tuple[str, ...], remaining: list[str]) -> Iterator[str]:
    for slug in slugs:
        if not slug.endswith("*"):
            yield slug
            continue
        folder = slug.removesuffix("*")
        yield from (name for name in remaining if name.startswith(folder))


def _get_slug(path: PurePosixPath) -> str:
    if path.name == _INDEX_FILE:
        return "" if path.parent == PurePosixPath() else str(path.parent)
    return str(path.with_suffix("")).removeprefix("../").lower()


def _find_files() -> Iterator[tuple[PurePosixPath, Traversable]]:
    """Yield the guide's files with their paths relative to docs/."""
    package = files(_PACKAGE)
    yield from _walk(package / _DOCUMENTS, PurePosixPath(), _MAX_FOLDER_DEPTH)
    yield PurePosixPath("../SECURITY.md"), package / "security.md"


def _walk(
    folder: Traversable, path: PurePosixPath, depth: int
) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for item in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if item.is_file():
            yield path / item.name, item
        elif depth:
            yield from _walk(item, path / item.name, depth - 1)


def _read_title(file: Traversable, slug: str) -> str:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# "):
                return line.removeprefix("# ").strip()
    return slug
