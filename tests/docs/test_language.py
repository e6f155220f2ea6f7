"""Names and prose do not return to the project's former style."""

import ast
import gc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cases import each
from tools.check_commits import iter_genitives

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "clients/python", "tests", "bench", "tools")
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if "node_modules" not in path.parts
)
MAX_TEST_NAME_LENGTH = 90
#: Limits per area. Mature Python projects have up to 6 odd phrases and 4 to 6 genitives.
MAX_PHRASES_PER_THOUSAND_LINES = 3
MAX_GENITIVES_PER_THOUSAND_WORDS = 8

#: Phrases that sound odd in technical English. Each has a precise replacement.
PHRASES = re.compile(
    r"\b(?:whoever|whomever|whom|somebody|someone else's|anybody|nobody|everybody|anew|meanwhile"
    r"|mend(?:s|ed|ing)?|farewell|patien(?:t|ce)|of now|by itself|for good|in one go"
    r"|on (?:its|their) way|(?:comes?|came) about|any more|the own"
    r"|(?:is|are|was|were|be) (?:told|asked|heard|said|looked at|meant)"
    r"|(?:is|are) as (?:it|they) (?:is|are)|goes by|looks at"
    r"|stands? (?:there|still|for|beside|where)"
    r"|who (?:asks|insists|calls|comes|goes|pays|wants)|what (?:comes|came|belongs|stands) \w+"
    r"|those of|however (?:many|long|often|busy)|to look at|lies ready)\b",
    re.IGNORECASE,
)
RETIRED_CONSTANT = re.compile(r"_?(?:MOST|LONGEST|FEWEST)_|PATIENCE|_AT_ONCE$")
RETIRED_NAMES = frozenset(
    """
    Act Answer AsyncLine AtOnce Case Chose Entered Exchange Folding Fields Go Happening House Inside
    Market Meaning Move No Patience Pictured Piece Platform Proof Refused Said Scene ServerFailed
    Settlement Shown StoredProof SyncLine Taken TooLittle Town TryLater Visit Waiting Wire Witness
    carry_out carried_one give_back give_notice have_witnessed hear in_one_go made_anew moved
    nothing_said numbered of_refusal of_result on_the_line open_case require_a_name require_one_name
    require_sound require_still shown write_down
    """.split()
)
#: Folder names, and module names without their suffix.
RETIRED_FILES = frozenset(
    """
    acts asked caution dealings figures founding made_secrets notices orders pieces remarks
    scene seen showing speech stage taps tell untold visit wire
    """.split()
)
#: Participles that do not end in -ed or -ing. Function names start with a verb instead.
IRREGULAR_PARTICIPLES = frozenset(
    """
    begun bound broken brought built caught chosen drawn driven forgotten found frozen given gone
    heard held hidden kept known lost made meant paid seen sent shown spent spoken taken taught
    thrown told understood withheld written
    """.split()
)
#: Verbs that look like participles.
VERBS = frozenset({"embed", "exceed", "feed", "need", "ping", "proceed", "seed"})
#: Established function names, allowed although they start with a participle.
NOUN_PHRASES = frozenset(
    {"dedicated_connection", "heading_close", "heading_open", "keyed_hash", "signed_string"}
)
PARTICIPLE = re.compile(r"[a-z]{2,}(?:ed|ing)")


class Definition(NamedTuple):
    name: str
    is_class: bool
    docstring: str
    decorators: list[str]


class Module(NamedTuple):
    docstring: str
    definitions: list[Definition]
    constants: list[str]
    comments: list[str]


@cache
def parse(path: Path) -> Module:
    """Parse a module, and keep only what the tests need.

    A syntax tree has so many objects that garbage collections would take most of the time.
    """
    text = path.read_text()
    gc.disable()
    try:
        tree = ast.parse(text)
        return Module(
            docstring=ast.get_docstring(tree) or "",
            definitions=[
                Definition(
                    node.name,
                    isinstance(node, ast.ClassDef),
                    ast.get_docstring(node) or "",
                    [ast.unparse(decorator) for decorator in node.decorator_list],
                )
                for node in iter_statements(tree)
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            ],
            constants=[
                target.id
                for node in tree.body
                if isinstance(node, ast.Assign | ast.AnnAssign)
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
                if isinstance(target, ast.Name)
            ],
            comments=re.findall(r"^\s*#:? (.+)$", text, re.MULTILINE),
        )
    finally:
        gc.enable()


def iter_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements below a node. Unlike `ast.walk`, skip expressions."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            yield child
            yield from iter_statements(child)


def iter_prose(path: Path) -> Iterator[str]:
    """Yield the lines in a module's docstrings and full-line comments, and the test names."""
    module = parse(path)
    for docstring in (module.docstring, *(item.docstring for item in module.definitions)):
        yield from docstring.splitlines()
    yield from module.comments
    for item in module.definitions:
        if item.name.startswith("test_"):
            yield item.name.removeprefix("test_").replace("_", " ")


def list_document_lines() -> list[str]:
    """Return the lines of all documents, without code."""
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    text = "\n".join(path.read_text() for path in documents if path.parent.name != "api")
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL).splitlines()


def list_prose_lines(area: str) -> list[str]:
    if area == "docs":
        return list_document_lines()
    paths = (path for path in SOURCES if path.is_relative_to(ROOT / area))
    return [line for path in paths if path != Path(__file__) for line in iter_prose(path)]


@each("area", (*FOLDERS, "docs"))
def test_odd_phrases_are_rare(area: str) -> None:
    lines = list_prose_lines(area)
    found = [line for line in lines if PHRASES.search(line)]
    assert len(found) * 1000 <= MAX_PHRASES_PER_THOUSAND_LINES * len(lines), found[:20]


@each("area", (*FOLDERS, "docs"))
def test_genitives_are_rare(area: str) -> None:
    """English stacks nouns: "connection settings", not "the settings of connections"."""
    lines = list_prose_lines(area)
    words = sum(len(line.split()) for line in lines)
    found = [match for line in lines for match in iter_genitives(line)]
    assert len(found) * 1000 <= MAX_GENITIVES_PER_THOUSAND_WORDS * words, found[:20]


def test_retired_names_are_not_defined() -> None:
    names = {item.name for path in SOURCES for item in parse(path).definitions}
    assert names & RETIRED_NAMES == set()
    files = {part for path in SOURCES for part in path.relative_to(ROOT).with_suffix("").parts}
    assert files & RETIRED_FILES == set()


def test_function_names_do_not_start_with_a_participle() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {item.name}"
        for path in SOURCES
        for item in parse(path).definitions
        if not item.is_class and starts_with_participle(item)
    ]
    assert found == []


def starts_with_participle(function: Definition) -> bool:
    """Return whether a function's name starts with a participle and is not exempt.

    Properties, fixtures and `NOUN_PHRASES` are exempt.
    """
    if function.name in NOUN_PHRASES or any(
        re.search("fixture|property|setter", decorator) for decorator in function.decorators
    ):
        return False
    word = function.name.strip("_").partition("_")[0]
    return word not in VERBS and (
        word in IRREGULAR_PARTICIPLES or PARTICIPLE.fullmatch(word) is not None
    )


def test_constants_do_not_match_retired_name_patterns() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for name in parse(path).constants
        if RETIRED_CONSTANT.search(name)
    ]
    assert found == []


def test_test_names_have_at_most_90_characters() -> None:
    found = [
        item.name
        for path in SOURCES
        for item in parse(path).definitions
        if item.name.startswith("test_") and len(item.name) > MAX_TEST_NAME_LENGTH
    ]
    assert found == []


def test_multiline_docstring_starts_with_a_summary_and_a_blank_line() -> None:
    found = []
    for path in (path for path in SOURCES if "src" in path.relative_to(ROOT).parts):
        for item in (parse(path), *parse(path).definitions):
            first, _, rest = item.docstring.partition("\n")
            if rest and (rest[0] != "\n" or not first.endswith((".", ":"))):
                found.append(f"{path.relative_to(ROOT)}: {first}")
    assert found == []
