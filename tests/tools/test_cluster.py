"""Programs, layout and configuration of `make cluster`. tests/torture runs a cluster."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tapgate.runtime.store.server_user import resolve_server_user
from tools.cluster import ClusterError, configuration, install, programs
from tools.cluster.cluster import Cluster
from tools.cluster.layout import Layout, Size, load_layout
from tools.cluster.processes import NodeProcess


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return load_layout(tmp_path, Size())


def hide_programs(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(programs, "SYSTEM_PATH", str(folder))
    monkeypatch.setattr(programs, "DEBIAN_DIR", folder)


@pytest.mark.parametrize(("program", "package"), programs.PACKAGES.items())
def test_missing_program_is_named_with_its_package(
    program: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hide_programs(monkeypatch, tmp_path)
    with pytest.raises(ClusterError) as raised:
        programs.find_debian_program(program)
    assert str(raised.value).startswith(f"{program} is missing: ")
    assert f"apt-get install {package}" in str(raised.value)


def test_missing_patroni_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "INSTALL_DIR", tmp_path)
    with pytest.raises(ClusterError, match=r"^patroni is missing: run `make .*installed`$"):
        programs.find_patroni(resolve_server_user(tmp_path))


def test_packages_that_cannot_be_downloaded_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hide_programs(monkeypatch, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert install.main([str(tmp_path / "debian")]) == 1
    expected = (
        "make cluster: etcd-server and haproxy cannot be downloaded:"
        " install them with your system's package manager\n"
    )
    assert capsys.readouterr().err == expected


def test_layout_is_kept_and_private(layout: Layout, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    assert load_layout(tmp_path, Size(gateway=1)) == layout
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(set(layout.ports.values())) == len(layout.ports)
    file.write_text("{")
    with pytest.raises(ClusterError, match="is damaged"):
        load_layout(tmp_path, Size())


def test_haproxy_accepts_the_configuration(layout: Layout, tmp_path: Path) -> None:
    try:
        program = programs.find_debian_program("haproxy")
    except ClusterError as error:
        pytest.skip(str(error))
    file = tmp_path / "haproxy.cfg"
    file.write_text(configuration.build_haproxy_configuration(layout))
    checked = subprocess.run(
        [*program.command, "-c", "-f", file],
        env=program.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_multi_host_url_names_every_postgresql_node(layout: Layout) -> None:
    url = configuration.build_multi_host_url(layout)
    for name in layout.size.list_names("postgres"):
        assert f":{layout.ports[name]}" in url
    assert url.endswith("?target_session_attrs=read-write")


def test_second_cluster_in_the_same_folder_is_rejected(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    cluster = Cluster(tmp_path)
    assert cluster.lock.acquire()
    with pytest.raises(ClusterError, match="already running"):
        Cluster(tmp_path).prepare()


async def test_kill_ends_all_descendants(tmp_path: Path) -> None:
    program = "import subprocess; subprocess.run(['sleep', '60'])"
    node = NodeProcess("node", [sys.executable, "-c", program], tmp_path, environ={})
    node.start()
    while len(node.list_processes()) < 2 and node.is_running:
        await asyncio.sleep(0.01)
    processes = node.list_processes()
    node.suspend()
    while any(process.status() != "stopped" for process in processes):
        await asyncio.sleep(0.01)
    node.kill()
    assert not node.is_running
    assert not any(process.is_running() for process in processes)
