"""Two proxies: keepalived moves the public address away from an HAProxy that finds no node."""

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from drivers.processes import free_port
from drivers.programs import DEPLOY, find_program

HEALTH_ADDRESS = "127.0.0.1:8404"
PRIORITY_DIFFERENCE = 10  # of the two proxies


def read_keepalived() -> str:
    return (DEPLOY / "keepalived/keepalived.conf").read_text()


def check_proxy(port: int) -> bool:
    """Run the check of keepalived.conf; return whether it passes."""
    line = re.search(r'^\s*script "(.+)"$', read_keepalived(), re.MULTILINE)
    assert line is not None
    command = shlex.split(line[1].replace(HEALTH_ADDRESS, f"127.0.0.1:{port}"))
    command[0] = find_program("curl")
    return subprocess.run(command, env={}, check=False).returncode == 0


def wait_for_check(port: int, expected: bool) -> float:
    """Wait until the check has this result; return the seconds."""
    began = time.monotonic()
    while check_proxy(port) is not expected:
        assert time.monotonic() - began < 20, f"the check does not become {expected}"
        time.sleep(0.05)
    return time.monotonic() - began


def test_check_fails_without_a_ready_node_and_without_haproxy(tmp_path: Path) -> None:
    node_port, health_port = free_port(), free_port()
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text()
    global_part = "global\n    maxconn 50\n"
    kept = text[text.index("defaults") : text.index("frontend public")]
    kept += text[text.index("frontend proxy_health") : text.index("\nbackend messengers")]
    kept = re.sub(r"10\.0\.0\.\d:\d+", f"127.0.0.1:{node_port}", kept)
    file = tmp_path / "haproxy.cfg"
    file.write_text(global_part + kept.replace(HEALTH_ADDRESS, f"127.0.0.1:{health_port}"))
    (tmp_path / "ready").touch()
    haproxy = subprocess.Popen([find_program("haproxy"), "-db", "-f", str(file)])
    try:
        wait_for_check(health_port, False)
        node = start_node(node_port, tmp_path)
        try:
            wait_for_check(health_port, True)
        finally:
            node.terminate()
            node.wait()
        assert wait_for_check(health_port, False) < 4
        node = start_node(node_port, tmp_path)
        try:
            wait_for_check(health_port, True)
            haproxy.kill()
            haproxy.wait()
            assert not check_proxy(health_port)
        finally:
            node.terminate()
            node.wait()
    finally:
        haproxy.kill()
        haproxy.wait()


def start_node(port: int, folder: Path) -> subprocess.Popen[bytes]:
    """Start a server that returns 200 to `/ready`."""
    return subprocess.Popen(
        [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_failed_check_outweighs_the_priority_of_the_first_proxy() -> None:
    text = read_keepalived()
    weight = int(re.search(r"^\s*weight (-\d+)$", text, re.MULTILINE)[1])  # type: ignore[index]
    first = int(re.search(r"^\s*priority (\d+)$", text, re.MULTILINE)[1])  # type: ignore[index]
    second = int(re.search(r"set the priority to (\d+)", text)[1])  # type: ignore[index]
    assert first - second == PRIORITY_DIFFERENCE
    assert first + weight < second
    # The second proxy would otherwise ignore the lower priority of the first.
    assert not re.search(r"^\s*nopreempt", text, re.MULTILINE)
    assert HEALTH_ADDRESS in text
