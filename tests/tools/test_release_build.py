"""A complete release: it is built from a commit, installed from its files, and started."""

import json
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers.processes import build_environ, free_port
from drivers.programs import find_program
from tapgate import VERSION
from tapgate.runtime.store.migration_plan import get_newest_number
from tools.release.__main__ import CHECKSUMS, build_release
from tools.release.commands import run
from tools.release.packages import build_python_package

pytestmark = [pytest.mark.client, pytest.mark.deploy]

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
FILES = {
    f"tapgate-{VERSION}-py3-none-any.whl",
    f"tapgate-{VERSION}.tar.gz",
    f"tapgate_client-{VERSION}-py3-none-any.whl",
    f"tapgate_client-{VERSION}.tar.gz",
    f"tapgate-{VERSION}.tgz",
    f"tapgate-{VERSION}.cdx.json",
    f"tapgate-{VERSION}.md",
    CHECKSUMS,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with this project's files, whose changes are all released."""
    folder = tmp_path_factory.mktemp("project")
    for name in run(
        "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", folder=ROOT
    ).split("\0")[:-1]:
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    changelog = folder / "CHANGELOG.md"
    text = re.sub(rf"^## {re.escape(VERSION)}.*\n\n", "", changelog.read_text(), flags=re.M)
    changelog.write_text(
        text.replace("## Unreleased\n", f"## Unreleased\n\n## {VERSION} - 2026-11-19\n")
    )
    names = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    run("git", "init", "--quiet", folder=folder)
    run("git", "add", "--all", folder=folder)
    run("git", *names, "commit", "--quiet", "--message", "test: Release", folder=folder)
    return folder


@pytest.fixture(scope="module")
def release(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the release's files."""
    find_program("npm")
    folder = tmp_path_factory.mktemp("release") / "dist"
    build_release(project, VERSION, folder)
    return folder


def test_release_has_all_files_with_their_checksums(release: Path) -> None:
    assert {file.name for file in release.iterdir()} == FILES
    checked = run("sha256sum", "--check", "--strict", CHECKSUMS, folder=release)
    assert {line.removesuffix(": OK") for line in checked.splitlines()} == FILES - {CHECKSUMS}
    notes = (release / f"tapgate-{VERSION}.md").read_text()
    assert notes.startswith(f"# Tapgate {VERSION}\n\n### Added\n") and "## 1.1.0" not in notes


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_bill_of_materials_names_the_installed_packages(release: Path) -> None:
    text = (release / f"tapgate-{VERSION}.cdx.json").read_text()
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    root = bill["metadata"]["component"]
    assert (root["name"], root["version"], root["type"]) == ("tapgate", VERSION, "application")
    lock = (ROOT / "deploy" / "requirements.lock").read_text()
    locked = {
        (name, version)
        for name, version, marker in re.findall(r"^([a-z0-9-]+)==(\S+)(.*)", lock, re.MULTILINE)
        if ";" not in marker  # packages of other platforms
    }
    found = {(normalize(item["name"]), item["version"]) for item in bill["components"]}
    assert locked | {("tapgate-client", VERSION)} <= found
    assert all(item.get("licenses") for item in bill["components"] if item["name"] == "asyncpg")
    required = {item["ref"]: item.get("dependsOn", []) for item in bill["dependencies"]}
    assert any(ref.startswith("asyncpg==") for ref in required["root-component"])
    assert "/tmp/" not in text and str(Path.home()) not in text


def test_wheel_from_the_project_equals_the_wheel_of_the_release(
    release: Path, project: Path, tmp_path: Path
) -> None:
    time = run("git", "log", "-1", "--format=%ct", folder=project).strip()
    (tmp_path / "output").mkdir()
    _, wheel = build_python_package(project, tmp_path / "output", tmp_path, time)
    assert wheel.read_bytes() == (release / wheel.name).read_bytes()


def test_packages_contain_their_license_and_no_links(release: Path) -> None:
    for name in (f"tapgate_client-{VERSION}.tar.gz", f"tapgate-{VERSION}.tgz"):
        with tarfile.open(release / name) as files:
            assert any(item.name.endswith("/LICENSE") and item.isfile() for item in files)
    with tarfile.open(release / f"tapgate-{VERSION}.tar.gz") as files:
        links = [item.name for item in files if item.issym() or item.islnk()]
    assert links == [f"tapgate-{VERSION}/.dockerignore"]
    with zipfile.ZipFile(release / f"tapgate-{VERSION}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
    documents = {str(path.relative_to(ROOT / "docs")) for path in ROOT.glob("docs/**/*.md")}
    prefix = "tapgate/sites/guide/documents/"
    assert documents <= {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


def test_typescript_package_can_be_installed_and_imported(release: Path, tmp_path: Path) -> None:
    package = release / f"tapgate-{VERSION}.tgz"
    (tmp_path / "package.json").write_text("{}")
    run("npm", "install", "--offline", "--no-audit", "--no-fund", package, folder=tmp_path)
    script = "import('tapgate').then(({TapgateClient, login}) => console.log(" \
        "typeof new TapgateClient('http://127.0.0.1', login('a', 'b')).getVersion))"  # fmt: skip
    assert run("node", "--eval", script, folder=tmp_path) == "function\n"


@pytest.fixture(scope="module")
def installed(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the command `tapgate` in a new environment.

    The release's wheels are its only packages that are not from the lock file.
    """
    folder = tmp_path_factory.mktemp("installed")
    environment = folder / "environment"
    run(UV, "venv", "--quiet", "--python", sys.executable, environment, folder=folder)
    install = (UV, "pip", "install", "--quiet", "--system-certs", "--python", environment)
    lock = ROOT / "requirements.lock"
    run(*install, "--require-hashes", "--requirement", lock, folder=folder)
    wheels = [file for file in release.iterdir() if file.suffix == ".whl"]
    run(*install, "--no-index", "--no-deps", *wheels, folder=folder)
    run(UV, "pip", "check", "--python", environment, folder=folder)
    return environment / "bin" / "tapgate"


def test_installed_command_names_its_version(installed: Path, tmp_path: Path) -> None:
    output = run(installed, "--version", folder=tmp_path)
    assert output.startswith(f"tapgate {VERSION}\nPostgreSQL ")


@pytest.fixture
def address(installed: Path, data_dir: Path) -> Iterator[str]:
    """Start the installed release, and yield the gateway's address."""
    port = free_port()
    ports = {"TAPGATE_PORT": str(port), "TAPGATE_MESSENGER_PORT": str(free_port())}
    environ = build_environ(data_dir, **ports, TAPGATE_DEMO="off", TAPGATE_WORKERS="1")
    with subprocess.Popen(
        [installed, "up"], env=environ, cwd=data_dir.parent, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            while not (line := process.stdout.readline()).startswith("The messenger listens on "):
                assert line, "the process exited"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def test_installed_release_starts_and_serves_its_documents(address: str) -> None:
    def get(path: str) -> bytes:
        with urllib.request.urlopen(address + path, timeout=30) as response:
            content: bytes = response.read()
        return content

    assert json.loads(get("/version")) == {
        "service": "tapgate",
        "version": VERSION,
        "newest_migration": get_newest_number(),
    }
    assert json.loads(get("/health"))["healthy"]
    assert b"Upgrade from 1.x to 2.0" in get("/guide/upgrading")
    assert b"<title>" in get("/console")
