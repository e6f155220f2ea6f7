"""Disk and network faults in namespaces of their own, and the relay that slows Valkey."""

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tools.cluster.configuration import HOST
from torture.cluster.relay import SlowRelay

pytestmark = pytest.mark.failures


def run_in_namespaces(script: str, *arguments: str) -> None:
    command = ["unshare", "--mount", "--net"]
    probe = subprocess.run(
        [*command, "ip", "link", "set", "lo", "up"], check=False, capture_output=True
    )
    if probe.returncode:
        pytest.skip(f"no namespaces: {probe.stderr.decode().strip()}")
    done = subprocess.run(
        [*command, sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[1],
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_full_disk_takes_no_byte_until_it_is_freed(tmp_path: Path) -> None:
    run_in_namespaces(
        """
        import sys
        from pathlib import Path
        from torture.cluster.isolation import SmallDisk
        disk = SmallDisk(Path(sys.argv[1], "disk"))
        disk.mount()
        file = disk.folder / "data"
        file.write_bytes(b"1" * 8192)
        disk.fill()
        try:
            with file.open("ab") as stream:
                stream.write(b"2" * 8192)
        except OSError as error:
            assert error.errno == 28, error
        else:
            raise AssertionError("the disk is not full")
        disk.free()
        file.write_bytes(b"3" * 8192)
        disk.unmount()
        """,
        str(tmp_path),
    )
    assert not (tmp_path / "disk/data").exists()  # mounted in the namespace only


def test_cut_loses_packets_of_one_address_and_delivers_them_later() -> None:
    run_in_namespaces(
        """
        import socket
        from torture.cluster import isolation
        isolation.prepare_network()
        server = socket.create_server(("0.0.0.0", 0))
        port = server.getsockname()[1]
        pairs = []
        for host in (isolation.DATABASE_ADDRESS, "127.0.0.1"):
            client = socket.create_connection((host, port), timeout=1)
            client.settimeout(10)
            pairs.append((client, server.accept()[0]))
        (cut, cut_peer), (other, other_peer) = pairs
        isolation.cut_database_address()
        cut.send(b"late")
        other.send(b"soon")
        assert other_peer.recv(9) == b"soon"
        cut_peer.settimeout(0.5)
        for attempt in (
            lambda: cut_peer.recv(9),
            lambda: socket.create_connection((isolation.DATABASE_ADDRESS, port), timeout=0.5),
        ):
            try:
                attempt()
            except TimeoutError:
                continue
            raise AssertionError("a packet arrived")
        isolation.restore_database_address()
        cut_peer.settimeout(10)
        assert cut_peer.recv(9) == b"late"
        """
    )


async def test_relay_delays_a_response_and_keeps_the_order() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server, relay = await asyncio.start_server(echo, HOST, 0), SlowRelay()
    relay.upstream_port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    async with server, relay.run():
        reader, writer = await asyncio.open_connection(HOST, relay.port)
        for delay in (0.0, 0.06):
            relay.delay = delay
            began = loop.time()
            for number in range(50):
                writer.write(b"%02d" % number)
                await asyncio.sleep(0)
            sent = b"".join(b"%02d" % number for number in range(50))
            assert await reader.readexactly(len(sent)) == sent
            assert loop.time() - began >= delay
        writer.close()
        assert await reader.read() == b""


async def test_relay_closes_the_connection_if_valkey_is_down() -> None:
    relay = SlowRelay()
    relay.upstream_port = 1
    async with relay.run():
        reader, writer = await asyncio.open_connection(HOST, relay.port)
        assert await reader.read() == b""
        writer.close()
