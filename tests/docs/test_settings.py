"""Documents and templates about settings match the declarations, and the examples are valid."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cases import each
from harness import PRODUCTION_ENVIRON
from tapgate.core.settings import Settings, list_documented_secrets, load_settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.core.settings.nodes import Environment
from tools.manual.settings import render_files

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "settings.md"
SETTING = re.compile(r"TAPGATE_[A-Z_]+")

SAFE_SECRETS = {
    **PRODUCTION_ENVIRON,
    "TAPGATE_ADMIN_PASSWORD": "correct horse battery",
    "TAPGATE_BOOK_SECRETS": '{"south": "mX5rTz0bWc4nVd8sKq2L"}',
    "TAPGATE_MESSENGER_APP_SECRET": "0c7f2d5b9a1e4836",
    "TAPGATE_MESSENGER_BRIDGE_TOKEN": "Vd8sKq2LmX5rTz0bWc4n",
    "TAPGATE_METRICS_TOKEN": "Kq2LmX5rTz0bWc4nVd8s",
    "TAPGATE_SMS_TOKEN": "5rTz0bWc4nVd8sKq2LmX",
}


class Row(NamedTuple):
    name: str
    values: str
    default: str
    description: str
    production: str
    example: str


def parse_rows() -> Iterator[Row]:
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("| `TAPGATE_"):
            row = Row(*(cell.strip() for cell in line[1:-1].split("|")))
            unquoted = {
                name: getattr(row, name).strip("`") for name in ("name", "default", "example")
            }
            yield row._replace(**unquoted)


ROWS = {row.name: row for row in parse_rows()}


class RecordingEnviron(Mapping[str, str]):
    """An environment that records which variables are read."""

    def __init__(self, variables: dict[str, str]) -> None:
        self._variables = variables
        self.read_names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.read_names.add(name)
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


@pytest.fixture(autouse=True)
def _run_in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flow.pem").write_text("-----BEGIN PRIVATE KEY-----\n")


def list_read_variables() -> set[str]:
    """Return every variable that is read in development or in production."""
    development, production = RecordingEnviron({}), RecordingEnviron(list_examples())
    load_settings(development)
    assert load_settings(production).is_production
    return development.read_names | production.read_names


def list_examples() -> dict[str, str]:
    """Return the documented examples, with secrets that production accepts."""
    return {row.name: row.example for row in ROWS.values()} | SAFE_SECRETS


def test_documents_and_templates_are_up_to_date() -> None:
    for name, text in render_files(ROOT).items():
        assert (ROOT / name).read_text() == text, f"{name} is stale: run make docs"


def test_every_declared_setting_is_read_and_documented() -> None:
    declared = {item.variable for item in Settings.list_variables()}
    assert len(declared) > 60
    assert list_read_variables() == declared == ROWS.keys()
    assert set(SETTING.findall(DOCUMENT.read_text())) == declared


def test_declarations_are_complete() -> None:
    variables = Settings.list_variables()
    for item in variables:
        assert item.example and item.label and not item.label.endswith("."), item.variable
        assert item.description.endswith("."), item.variable
    labels = [item.label for item in (*variables, Settings.oidc)]
    assert len(set(labels)) == len(labels)


def format_default(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if value not in (None, ()) else "none"


def test_documented_defaults_are_correct() -> None:
    settings = load_settings({})
    other_settings = load_settings({"TAPGATE_DATA_DIR": "elsewhere"})
    for row in ROWS.values():
        field = row.name.removeprefix("TAPGATE_").lower()
        if field not in Settings.declared:
            continue
        value = getattr(settings, field)
        generated = field != "data_dir" and value != getattr(other_settings, field)
        expected = "generated" if generated else format_default(value)
        assert row.default == expected, f"the documented default of {row.name} is incorrect"


def test_examples_are_accepted_together() -> None:
    settings = load_settings(list_examples())
    assert settings.environment == Environment.PRODUCTION
    for row in ROWS.values():
        load_settings({**list_examples(), row.name: row.example} | SAFE_SECRETS)


@each("environment", [Environment.STAGING, Environment.PRODUCTION])
def test_documented_secrets_are_rejected_in_staging_and_production(environment: str) -> None:
    published = set[str]()
    for name in SAFE_SECRETS.keys() - {"TAPGATE_ENVIRONMENT", "TAPGATE_PUBLIC_URL"}:
        example = ROWS[name].example
        published |= set(json.loads(example).values()) if example.startswith("{") else {example}
        with pytest.raises(SettingsError, match=name):
            load_settings({**list_examples(), "TAPGATE_ENVIRONMENT": environment, name: example})
    assert published | {"dev-verify-token"} == list_documented_secrets()


def test_settings_required_in_production_are_documented() -> None:
    """Add the setting that each error message names until the settings load."""
    environ = {"TAPGATE_ENVIRONMENT": Environment.PRODUCTION}
    required: set[str] = set()
    while True:
        try:
            load_settings(environ)
            break
        except SettingsError as error:
            match = SETTING.match(str(error))
            assert match is not None
            assert match[0] not in required, error
            required.add(match[0])
            environ[match[0]] = list_examples()[match[0]]
    documented = {row.name for row in ROWS.values() if row.production.startswith("Required.")}
    assert documented == required, "`In production` starts with `Required.` for other settings"
