"""The recipes in CONTRIBUTING.md work: following their steps makes the change.

A step is a sentence and a code block. The sentence names a file, and the text before or after which
the lines of the block belong, or a folder and the file to create. Each recipe is applied to a copy
of the source, and a script checks the result there.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Self

import pytest

from tapgate.runtime.store.migration_plan import get_newest_number

ROOT: Final = Path(__file__).parents[2]
DOCUMENT: Final = (ROOT / "CONTRIBUTING.md").read_text()
#: What a recipe can change, and what its check reads.
COPIED: Final = ("src", "clients/python/src", "tests", "tools", "docs", "deploy")
#: Folders in which Python finds the packages of a copy.
IMPORTED: Final = ("src", "clients/python/src", "tests", ".")
NEXT_NUMBER: Final = "NNNN"

STEP: Final = re.compile(
    r"^In `(?P<path>[^`]+)`,"
    r"(?: in `(?P<context>[^`]+)`,)?"
    r"(?: create `(?P<name>[^`]+)`[^:\n]*| (?P<side>before|after) `(?P<anchor>[^`]+)`):\n\n"
    r"```\w*\n(?P<lines>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SUMMARY_ROW: Final = re.compile(r"^\| \[[^]]+\]\(#([a-z-]+)\) \| (\d+) \| (\d+) \|$", re.MULTILINE)
#: Largest accepted number of places, including tests.
MAX_PLACES: Final = {"add-a-setting": 2, "add-a-subscriber-field": 7, "add-an-endpoint": 5}


class Step(NamedTuple):
    path: str
    context: str | None
    name: str | None
    side: str | None
    anchor: str | None
    lines: str

    @classmethod
    def parse_all(cls, text: str) -> list[Self]:
        return [cls(**match.groupdict()) for match in STEP.finditer(text)]

    @property
    def file(self) -> str:
        return self.path if self.name is None else f"{self.path}/{self.name}"

    def apply(self, root: Path) -> None:
        if self.name is not None:
            self._create(root / self.path, self.name)
            return
        file = root / self.path
        lines = file.read_text().splitlines(keepends=True)
        index = self._find(lines) + (self.side == "after")
        file.unlink()  # a link to the original
        file.write_text("".join([*lines[:index], self.lines, *lines[index:]]))

    def _create(self, folder: Path, name: str) -> None:
        assert folder.is_dir(), f"{self.path} is not a folder"
        if name.startswith(NEXT_NUMBER):
            name = name.replace(NEXT_NUMBER, f"{int(get_newest_number(folder)) + 1:04}")
        assert not (folder / name).exists(), f"{name} exists"
        (folder / name).write_text(self.lines)

    def _find(self, lines: list[str]) -> int:
        """Return the number of the only line with the anchor, or of the first in the context."""
        assert self.anchor is not None
        first = 0
        if self.context is not None:
            (first,) = [number for number, line in enumerate(lines) if self.context in line][:1]
        found = [number for number, line in enumerate(lines) if self.anchor in line]
        found = [number for number in found if number >= first]
        assert found, f"{self.path} has no line with {self.anchor!r}"
        assert self.context or len(found) == 1, f"{self.path}: {self.anchor!r} is not unique"
        return found[0]


def parse_recipes() -> Iterator[tuple[str, list[Step]]]:
    for section in DOCUMENT.split("\n### ")[1:]:
        title, _, text = section.partition("\n")
        yield title.lower().replace(" ", "-"), Step.parse_all(text)


RECIPES: Final = dict(parse_recipes())

CHECKS: Final = {
    "add-a-setting": """
        from pathlib import Path
        from tapgate.core.settings import Settings, load_settings
        from tapgate.core.settings.effective import describe_settings
        from tapgate.sites.console.translation.translator import Language, get_translator
        from tools.manual.settings import render_files

        settings = load_settings({"TAPGATE_SLOW_REQUEST_MS": "250"})
        assert settings.slow_request_ms == 250
        assert load_settings({}).slow_request_ms == 1000
        assert "TAPGATE_SLOW_REQUEST_MS" in {item.name for item in describe_settings(settings)}
        assert "| `TAPGATE_SLOW_REQUEST_MS` |" in render_files(Path())["docs/settings.md"]
        label = Settings.slow_request_ms.label
        assert get_translator(Language.FR).translate(label) != label
        """,
    "add-a-subscriber-field": """
        from pathlib import Path
        from tapgate.business.customers.subscribers import queries
        from tapgate.business.customers.subscribers.model import Subscriber
        from tapgate.runtime.store.migration_plan import MIGRATIONS_DIR
        from tapgate.server.gateway import build_openapi_document
        from business.customers.subscribers.test_registration import PROFILE

        (migration,) = MIGRATIONS_DIR.glob("*_occupation.sql")
        assert migration.name == max(MIGRATIONS_DIR.glob("*.sql")).name
        assert "occupation" in queries._COLUMNS
        assert "occupation" in queries._MUTABLE_COLUMNS
        schemas = build_openapi_document()["components"]["schemas"]
        for name in ("SubscriberRecord", "DisclosedSubscriber", "Registration", "SubscriberUpdate"):
            assert "occupation" in schemas[name]["properties"], name
        assert list(PROFILE).index("occupation") == list(PROFILE).index("address") + 1
        """,
    "show-the-field-in-the-console": """
        from tapgate.sites.console.console import ACTIONS
        from tapgate.sites.console.rendering import build_environment
        from tapgate.sites.console.translation.translator import Language

        forms = {action.name: action.fields for action in ACTIONS}
        for name in ("subscriber.register", "subscriber.update"):
            assert "occupation" in [field.name for field in forms[name]]
        environment = build_environment("tapgate.sites.console", language=Language.FR)
        source, _, _ = environment.loader.get_source(environment, "subscribers/customer.html")
        assert "Profession" in environment.compile(source, raw=True)
        """,
    "add-an-endpoint": """
        from server.gateway.test_access import test_declared_access_matches_the_specification
        from tapgate.server.gateway import build_openapi_document

        test_declared_access_matches_the_specification()
        document = build_openapi_document()
        operation = document["paths"]["/api/v1/subscribers/{id}/public-name"]["get"]
        assert operation["operationId"] == "get_public_name"
        assert set(document["components"]["schemas"]["PublicName"]["properties"]) == {"id", "name"}
        """,
    "add-an-event": """
        from datetime import UTC, datetime
        import msgspec
        from events.webhooks.test_webhooks_docs import test_every_event_is_described
        from tapgate.business.customers.subscribers.model import Subscriber, list_events
        from tapgate.sites.console.translation.translator import Language, get_translator
        from tapgate_client.schemas.webhooks import WEBHOOK_EVENT_TYPES

        assert "subscriber.phone_changed" in WEBHOOK_EVENT_TYPES
        assert "Customer phone changed" in get_translator(Language.FR).texts
        test_every_event_is_described()
        now = datetime.now(UTC)
        before = Subscriber(
            id=1, account_id=2, phone_number="+23276123456", first_name="Aminata",
            last_name="Kamara", currency="SLE", created_at=now, updated_at=now,
        )
        after = msgspec.structs.replace(before, phone_number="+23276999001")
        assert list_events(before, after) == ["subscriber.phone_changed"]
        assert list_events(before, before) == []
        """,
    "add-a-console-page": """
        from docs.test_console import test_every_navigation_page_is_documented
        from tapgate.sites.console.console import build_console
        from tapgate.sites.console.rendering import build_environment
        from tapgate.sites.console.translation.translator import Language

        test_every_navigation_page_is_documented()
        path = "/console/provider-warnings"
        assert build_console().get_route(path) == path
        environment = build_environment("tapgate.sites.console", language=Language.FR)
        source, _, _ = environment.loader.get_source(environment, "provider_warnings.html")
        code = environment.compile(source, raw=True)
        assert "Avertissements du fournisseur" in code
        assert "Provider warnings" not in code
        """,
    "add-a-chat-command": """
        from builders.conversation import ConversationDriver, resolve_text_message
        from messenger import test_texts
        from messenger.understanding import test_held_out_accuracy as held_out
        from messenger.journeys.test_chat_turns import CHAT_COMMAND_LABELS
        from tapgate.messenger.understanding.resolver import resolve
        from tapgate.sites.console.translation.translator import Language, get_translator

        test_texts.test_every_command_has_a_script()
        test_texts.test_every_language_has_the_same_keys_and_placeholders()
        held_out.test_held_out_samples_are_unique_and_cover_every_command()
        for text in ("safety tips", "conseils de sécurité", "how do i keep my wallet safe"):
            assert resolve(text, None).command == "safety", text
        assert "Safety tips" in get_translator(Language.FR).texts
        chat = ConversationDriver("en")
        chat("menu")
        assert "cmd:safety" in [option.id for option in chat.last_offer.options]
        chat(resolve_text_message("safety tips"))
        assert "If a card is lost" in chat.reply_text
        assert CHAT_COMMAND_LABELS["safety"] == "Safety tips"
        """,
}


def copy_source(folder: Path) -> None:
    """Link all files, also compiled modules: compiling takes longer than a check."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, copy_function=os.symlink)


def run_check(recipe: str, folder: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHECKS[recipe])],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(str(folder / name) for name in IMPORTED)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout


def apply(recipe: str, folder: Path) -> None:
    for step in RECIPES[recipe]:
        step.apply(folder)


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_recipe_makes_the_change(recipe: str, tmp_path: Path) -> None:
    copy_source(tmp_path)
    apply(recipe, tmp_path)
    run_check(recipe, tmp_path)


def test_all_recipes_apply_to_one_tree(tmp_path: Path) -> None:
    copy_source(tmp_path)
    for recipe in RECIPES:
        apply(recipe, tmp_path)
    for file in {step.file for steps in RECIPES.values() for step in steps}:
        if file.endswith(".py"):
            ast.parse((tmp_path / file).read_text())


def test_every_recipe_is_listed_with_its_places_and_checked() -> None:
    rows = {
        name: (int(places), int(files)) for name, places, files in SUMMARY_ROW.findall(DOCUMENT)
    }
    counted = {
        name: (len(steps), len({step.file for step in steps})) for name, steps in RECIPES.items()
    }
    assert rows == counted
    assert rows.keys() == CHECKS.keys()
    assert all(rows[name][0] <= limit for name, limit in MAX_PLACES.items())


def test_every_code_block_of_a_recipe_is_a_step() -> None:
    blocks = DOCUMENT.partition("\n### ")[2].count("\n```") // 2
    assert blocks == sum(map(len, RECIPES.values()))


def test_step_is_refused_if_its_text_is_missing_or_not_unique(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 1\n")
    repeated = Step("a.py", None, None, "after", "= 1", "z = 1\n")
    with pytest.raises(AssertionError, match="has no line with 'q'"):
        repeated._replace(anchor="q").apply(tmp_path)
    with pytest.raises(AssertionError, match="'= 1' is not unique"):
        repeated.apply(tmp_path)
    repeated._replace(anchor="x").apply(tmp_path)
    assert (tmp_path / "a.py").read_text() == "x = 1\nz = 1\ny = 1\n"
