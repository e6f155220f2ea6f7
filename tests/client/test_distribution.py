"""The distribution `tapgate-client`: its version and its dependencies."""

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import tapgate
import tapgate_client
from tools.manual.version import PLACES, write_version

ROOT = Path(__file__).parents[2]


def load_project(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return project


GATEWAY = load_project(ROOT)
CLIENT = load_project(ROOT / "clients" / "python")


def test_gateway_and_clients_have_one_version() -> None:
    package = json.loads((ROOT / "clients" / "typescript" / "package.json").read_text())
    versions = {GATEWAY["version"], CLIENT["version"], package["version"]}
    assert versions == {tapgate.VERSION} == {tapgate_client.VERSION}
    assert f"tapgate-client=={tapgate_client.VERSION}" in GATEWAY["dependencies"]


def test_version_is_declared_once(tmp_path: Path) -> None:
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert [*write_version(tmp_path)] == []
    package = tmp_path / "clients" / "typescript" / "package.json"
    package.write_text(package.read_text().replace(tapgate.VERSION, "1.0.0"))
    assert [*write_version(tmp_path)] == [package]
    assert json.loads(package.read_text())["version"] == tapgate.VERSION


def test_client_depends_only_on_its_http_library_and_decoder() -> None:
    names = [dependency.partition(">=")[0] for dependency in CLIENT["dependencies"]]
    assert names == ["httpx2", "msgspec"]
    assert set(CLIENT["dependencies"]) <= set(GATEWAY["dependencies"])
    assert CLIENT["requires-python"] == GATEWAY["requires-python"]


def test_lock_files_do_not_pin_the_client() -> None:
    for file in (*ROOT.glob("requirements*.lock"), ROOT / "deploy" / "requirements.lock"):
        assert "tapgate" not in file.read_text(), file
