"""HAProxy and nginx with the files in deploy/: what they publish, and what they send to Tapgate.

Each runs in front of three nodes: one is down, and two are a stub that returns the request line and
the client's address.
"""

import http.client
import re
import shutil
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cases import each
from drivers.processes import free_port
from drivers.programs import DEPLOY, find_program

HOSTS = ("pay.example.com", "chat.example.com")
PAYMENT = "/api/v1/pos/payment"


class Stub(BaseHTTPRequestHandler):
    """Responds to requests. A POST with `?fail` is received, and the connection is closed."""

    protocol_version = "HTTP/1.1"
    failed_paths: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.partition("?")[2].startswith("fail"):
            self.failed_paths.append(self.path)
            self.close_connection = True
        else:
            self.do_GET()

    def do_GET(self) -> None:
        text = f"{self.path} {self.headers.get_all('X-Forwarded-For')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class StubServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Print nothing: health checks close the connection before they have read the response."""


@pytest.fixture(scope="module")
def stub_port() -> Iterator[int]:
    with StubServer(("127.0.0.1", 0), Stub) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a PEM file with a self-signed certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOSTS[0])])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "tapgate.pem"
    file.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return file


class Proxy:
    """A running proxy. Its client has the address 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, host: str = HOSTS[0]) -> tuple[int, str]:
        return self._send("GET", path, host)[:2]

    def post(self, path: str) -> tuple[int, str]:
        return self._send("POST", path, HOSTS[0])[:2]

    def get_header(self, path: str, host: str, name: str) -> str | None:
        return self._send("GET", path, host)[2][name]

    def _send(self, method: str, path: str, host: str) -> tuple[int, str, http.client.HTTPMessage]:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=context, timeout=60
        )
        headers = {"Host": host, "X-Forwarded-For": "203.0.113.9"}
        connection.request(method, path, b"{}" if method == "POST" else None, headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text, response.headers

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the proxy forwards requests."""
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, "the proxy has stopped"
            assert time.monotonic() < deadline, "the proxy does not respond"
            try:
                if self.get("/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)


def adapt(text: str, stub_port: int, *, internal: bool) -> str:
    """Replace what the files ask the operator to replace, and add a node that is down."""
    lines = []
    for line in text.splitlines():
        if "10.0.0.1:" in line:
            down = re.sub(r"10\.0\.0\.1:\d+", f"127.0.0.1:{free_port()}", line)
            lines.append(down.replace("-a ", "-down "))
        lines.append(re.sub(r"10\.0\.0\.[12]:\d+", f"127.0.0.1:{stub_port}", line))
    text = "\n".join(lines) + "\n"
    return text if internal else text.replace("127.0.0.0/8", "192.0.2.0/24")


def start_haproxy(stub_port: int, certificate: Path, folder: Path, *, internal: bool) -> list[str]:
    program, file = find_program("haproxy"), folder / "haproxy.cfg"
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text().replace("bind :80\n", "\n")
    text = text.replace("/etc/haproxy/tapgate.pem", str(certificate))
    text = text.replace("bind :443", "bind 127.0.0.1:TLS_PORT").replace(
        "maxconn 8000", "maxconn 50"
    )
    text = text.replace("127.0.0.1:8404", f"127.0.0.1:{free_port()}")
    file.write_text(adapt(text, stub_port, internal=internal))
    return [program, "-db", "-f", str(file)]


def start_nginx(stub_port: int, certificate: Path, folder: Path, *, internal: bool) -> list[str]:
    program, file = find_program("nginx"), folder / "nginx.conf"
    text = (DEPLOY / "nginx/tapgate.conf").read_text()
    text = re.sub(r"listen \[::\]:.*", "", text)
    text = text.replace("listen 80;", f"listen 127.0.0.1:{free_port()};")
    text = text.replace("listen 443", "listen 127.0.0.1:TLS_PORT")
    text = re.sub(r"/etc/nginx/tls/\S+;", f"{certificate};", text)
    text = text.replace("/var/log/nginx", str(folder))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    file.write_text(
        # Only root can write the log that servers without one of their own share.
        f"pid {folder}/pid; daemon off; error_log stderr; events {{}}"
        f" http {{ access_log off; {temporary}\n" + adapt(text, stub_port, internal=internal) + "}"
    )
    return [program, "-c", str(file), "-p", str(folder)]


STARTS = {"haproxy": start_haproxy, "nginx": start_nginx}


@pytest.fixture(scope="module", params=[(n, i) for n in STARTS for i in (True, False)], ids=str)
def proxy(
    request: pytest.FixtureRequest,
    stub_port: int,
    certificate: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Proxy, bool]]:
    name, internal = request.param
    folder, port = tmp_path_factory.mktemp(name), free_port()
    command = STARTS[name](stub_port, certificate, folder, internal=internal)
    for file in folder.iterdir():
        file.write_text(file.read_text().replace("TLS_PORT", str(port)))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        proxy = Proxy(port)
        proxy.wait(process)
        yield proxy, internal
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def test_public_paths_are_forwarded_with_the_clients_address(proxy: tuple[Proxy, bool]) -> None:
    pages = ("/payment", "/docs", "/guide", "/t", "/favicon.ico", "/health", "/version")
    pages += ("/portal", "/portal/sign-in", "/portal/assets/console.css")
    pages += ("/verify", "/verify/assets/verify.js", "/.well-known/tapgate-keys")
    for path in (PAYMENT, *pages):
        assert proxy[0].get(path) == (200, f"{path} ['127.0.0.1']")


def test_payment_is_sent_to_another_node_if_one_is_down(proxy: tuple[Proxy, bool]) -> None:
    for _ in range(6):
        assert proxy[0].post(PAYMENT)[0] == 200


def test_payment_is_not_repeated_after_it_was_sent(proxy: tuple[Proxy, bool]) -> None:
    path = f"{PAYMENT}?fail-{proxy[0].port}"
    assert proxy[0].post(path)[0] == 502
    assert Stub.failed_paths.count(path) == 1


@each(
    "path",
    ["/console", "/metrics", "/ready", "/live", "/api/v1/admin/users", "/api/v1/ledger/accounts"],
)
def test_internal_paths_are_forwarded_only_from_internal_networks(
    proxy: tuple[Proxy, bool], path: str
) -> None:
    client, internal = proxy
    assert client.get(path)[0] == (200 if internal else 404)


@each(
    "path",
    [
        "/%63onsole",
        "//console",
        "/api/v1/../../console",
        "/api/v1/..%2f..%2fmetrics",
        "/api/v1/%61dmin/users",
        "/api/v1//admin/users",
        "/api/v1/pos/../admin/users",
        "/docs/../metrics",
    ],
)
def test_encoded_paths_do_not_bypass_the_rules(proxy: tuple[Proxy, bool], path: str) -> None:
    client, internal = proxy
    if not internal:
        assert client.get(path)[0] in (400, 404)


def test_messenger_host_publishes_only_the_providers_endpoints(proxy: tuple[Proxy, bool]) -> None:
    client, chat = proxy[0], HOSTS[1]
    assert client.get("/api/v1/webhooks/messaging", chat)[0] == 200
    for path in ("/api/v1/messages/template", "/metrics", "/api/v1/webhooks"):
        assert client.get(path, chat)[0] == 404


@each("host", HOSTS)
@each("path", ["/health", "/no-such-path"])
def test_browsers_use_only_https_for_the_host_and_its_subdomains(
    proxy: tuple[Proxy, bool], host: str, path: str
) -> None:
    policy = proxy[0].get_header(path, host, "Strict-Transport-Security")
    assert policy == "max-age=31536000; includeSubDomains"
