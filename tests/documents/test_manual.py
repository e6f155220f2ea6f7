"""docs/api is what the endpoints say, and its examples are what they take."""

import json
import shlex
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from edge.stage import things
from tapgate.cli.manual import INDEX, OPERATIONS, description, pages, write
from tapgate.edge.endpoint import Endpoint
from tapgate.edge.openapi import described
from tapgate.edge.reading import BodyReader
from tapgate.errors import Code
from tapgate.gateway import NOUNS

FOLDER = Path(__file__).parents[2] / "docs" / "api"
ENDPOINTS = list(chain.from_iterable(NOUNS))
WITH_BODY = [one for one in ENDPOINTS if one.body_type not in (None, bytes)]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return description()


@pytest.fixture(scope="module")
def made(document: dict[str, Any]) -> dict[str, str]:
    return pages(document, (FOLDER / INDEX).read_text())


def test_the_pages_are_those_that_the_endpoints_make(made: dict[str, str]) -> None:
    there = {file.name: file.read_text() for file in FOLDER.glob("*.md")}
    stale = sorted(name for name in there | made if there.get(name) != made.get(name))
    assert not stale, f"docs/api is not up to date ({', '.join(stale)}): run make docs"


def test_the_pages_are_the_same_every_time(made: dict[str, str]) -> None:
    assert pages(description(), made[INDEX]) == made


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: one.name)
def test_every_operation_is_in_the_index_and_on_its_page(
    made: dict[str, str], endpoint: Endpoint
) -> None:
    assert f"| `{endpoint.name}` | [{endpoint.summary}](" in made[INDEX]
    page = made[endpoint.tag.lower().replace(" ", "-") + ".md"]
    assert f"`{endpoint.name}`" in page
    for code in endpoint.errors:
        assert f"[`{code}`](../errors.md#{code.lower()})" in page


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: one.name)
def test_every_operation_says_what_it_does(endpoint: Endpoint) -> None:
    assert endpoint.summary, (
        f"{endpoint.handler.__qualname__} needs a docstring: its first line is the heading in"
        " docs/api, the rest explains it"
    )


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=lambda one: one.name)
def test_every_example_is_accepted(document: dict[str, Any], endpoint: Endpoint) -> None:
    operation = document["paths"][endpoint.path][endpoint.method.lower()]
    (example, *_) = (one["example"] for one in operation["requestBody"]["content"].values())
    # Raises what a client would be told: then the field's rule has a wrong `example`, or needs
    # one of its own in edge/schemas.py.
    BodyReader(endpoint.body_type, "SLE").read(json.dumps(example).encode())


def stage_page() -> str:
    document = json.loads(described(list(things), "SLE"))
    (page,) = (text for name, text in pages(document, "").items() if name != INDEX)
    return page


def example_of(page: str, name: str) -> str:
    section = page.split(f"\n`{name}`", 1)[1]
    return section.split("```sh\n", 1)[1].split("\n```", 1)[0]


def test_a_bearer_is_shown_where_it_is_taken() -> None:
    words = shlex.split(example_of(stage_page(), "POST /api/v1/things"))
    assert words[:3] == ["curl", "-s", "$TAPGATE/api/v1/things"]
    assert "Authorization: Bearer $KEY" in words
    assert json.loads(words[words.index("-d") + 1])["name"]


def test_a_signature_is_shown_where_it_is_needed() -> None:
    example = example_of(stage_page(), "POST /pay")
    assert "$(tapgate sign pos POST /pay" in example
    assert "Bearer" not in example


def test_what_was_written_by_hand_stays(document: dict[str, Any], made: dict[str, str]) -> None:
    again = pages(document, "# Mine\n\nWords.\n\n## Operations\n\nstale\n")[INDEX]
    assert again.startswith("# Mine\n\nWords.\n\n## Operations\n")
    assert "stale" not in again
    assert again.endswith(made[INDEX].split(OPERATIONS, 1)[1])


def test_writing_changes_what_is_stale_only(tmp_path: Path) -> None:
    assert len(write(tmp_path)) > 5
    assert write(tmp_path) == []
    (tmp_path / "gone.md").write_text("of an endpoint that is no more")
    (tmp_path / "audit.md").write_text("stale")
    assert write(tmp_path) == ["audit.md", "gone.md"]
    assert not (tmp_path / "gone.md").exists()
    assert Code.UNAUTHORIZED in (tmp_path / "audit.md").read_text()
