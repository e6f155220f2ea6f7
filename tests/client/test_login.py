"""Client login, token renewal and signatures."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from builders.auth import EMAIL, PASSWORD
from drivers.in_process import GATEWAY_URL, NO_BACKOFF, AppTransport, ClientFactory
from drivers.network_faults import SERVE_AND_DROP, FlakyServer
from tapgate.http.http_messages import Request, Response
from tapgate.server.gateway_installation import create_first_admin
from tapgate_client import (
    NO_RETRIES,
    AsyncTapgateClient,
    AuthenticationError,
    Credential,
    Login,
    PartnerKey,
    PosKey,
)
from tapgate_client.operation import Operation, build_operation

LOGIN = Login(EMAIL, PASSWORD)


@pytest.fixture
async def flaky_server(client_factory: ClientFactory) -> AsyncIterator[FlakyServer]:
    await create_first_admin(client_factory.services, EMAIL, PASSWORD)
    async with FlakyServer(client_factory.transport).listen() as server:
        yield server


@pytest.fixture
async def gateway(flaky_server: FlakyServer) -> AsyncIterator[AsyncTapgateClient]:
    async with AsyncTapgateClient(flaky_server.url, LOGIN, retries=NO_BACKOFF) as gateway:
        yield gateway


def list_requests(server: FlakyServer) -> list[str]:
    return [request.target.rpartition("/")[2] for request in server.requests]


async def test_concurrent_first_requests_log_in_once(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer
) -> None:
    first, *others = await asyncio.gather(*(gateway.admin.get_me() for _ in range(5)))
    assert first.email == EMAIL
    assert others == [first] * 4
    assert list_requests(flaky_server) == ["login"] + ["me"] * 5


async def test_public_operation_needs_no_login(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer
) -> None:
    assert (await gateway.system.get_health()).healthy
    assert list_requests(flaky_server) == ["health"]


async def test_client_logs_in_again_after_the_session_ended(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer
) -> None:
    await gateway.admin.log_out()
    assert (await gateway.admin.get_me()).email == EMAIL
    # The refresh is rejected because the refresh token's session has ended.
    assert list_requests(flaky_server) == ["login", "logout", "me", "refresh", "login", "me"]


async def test_concurrent_requests_refresh_an_expired_token_once(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer
) -> None:
    await gateway.admin.get_me()
    gateway.transport.request_flow.token_expires_at = 0.0
    await asyncio.gather(*(gateway.admin.get_me() for _ in range(5)))
    assert list_requests(flaky_server).count("refresh") == 1
    assert list_requests(flaky_server).count("login") == 1


async def test_refresh_token_is_not_sent_again_after_a_lost_response(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer
) -> None:
    await gateway.admin.get_me()
    gateway.transport.request_flow.token_expires_at = 0.0
    flaky_server.behaviors = [SERVE_AND_DROP]
    await gateway.admin.get_me()
    assert list_requests(flaky_server) == ["login", "me", "refresh", "login", "me"]


async def test_wrong_password_raises_unauthorized(flaky_server: FlakyServer) -> None:
    wrong = Login(EMAIL, "wrong horse battery")
    async with AsyncTapgateClient(flaky_server.url, wrong, retries=NO_BACKOFF) as gateway:
        with pytest.raises(AuthenticationError):
            await gateway.admin.get_me()
    assert list_requests(flaky_server) == ["login"]


async def test_disabled_admin_gets_unauthorized(
    client_factory: ClientFactory, gateway: AsyncTapgateClient, flaky_server: FlakyServer
) -> None:
    other = await client_factory.create_for_admin()
    me = await gateway.admin.get_me()
    await other.admin.disable(me.id)
    with pytest.raises(AuthenticationError):
        await gateway.admin.get_me()


async def test_concurrent_threads_log_in_once(
    client_factory: ClientFactory, flaky_server: FlakyServer
) -> None:
    with client_factory.create_sync(LOGIN) as gateway:
        responses = await asyncio.gather(
            *(asyncio.to_thread(gateway.admin.get_me) for _ in range(4))
        )
    assert {response.email for response in responses} == {EMAIL}
    sessions = await client_factory.services.database.fetchval("SELECT count(*) FROM sessions")
    assert sessions == 1


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
OPERATIONS = st.tuples(
    st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    TEXT,
    st.dictionaries(TEXT, TEXT, max_size=3),
    st.binary(max_size=200),
)


def build_test_operation(
    method: str, name: str, query: dict[str, str], content: bytes
) -> Operation[None]:
    return build_operation(
        "reads",
        f"{method} /api/v1/things/{{name}}/more",
        type(None),
        path={"name": name},
        query=query,
        body=content,
    )


class SignatureCheckApp:
    """Application that only authenticates requests, on any path."""

    def __init__(self, client_factory: ClientFactory) -> None:
        self._authenticator = client_factory.services.authenticator
        self.kind: str | None = None

    async def respond(self, request: Request) -> Response:
        caller = await self._authenticator.authenticate(
            request.method,
            request.path,
            request.query,
            request.headers,
            await request.read_body(1 << 20),
        )
        self.kind = None if caller is None else caller.kind
        return Response(204, b"", b"")


async def assert_gateway_accepts(
    client_factory: ClientFactory, credential: Credential, kind: str
) -> None:
    loop, app = asyncio.get_running_loop(), SignatureCheckApp(client_factory)
    transport = AppTransport(app)
    gateway = AsyncTapgateClient(GATEWAY_URL, credential, http=transport, retries=NO_RETRIES)

    @settings(max_examples=40)
    @given(OPERATIONS)
    def check(arguments: tuple[str, str, dict[str, str], bytes]) -> None:
        assume(arguments[1] not in (".", ".."))
        app.kind = None
        request = gateway.transport.send(build_test_operation(*arguments))
        asyncio.run_coroutine_threadsafe(request, loop).result()
        assert app.kind == kind

    await asyncio.to_thread(check)


async def test_gateway_accepts_a_terminal_signature_of_any_request(
    client_factory: ClientFactory,
) -> None:
    key = await client_factory.harness.create_processor()
    await assert_gateway_accepts(client_factory, PosKey(key.id, key.secret), "processor")


async def test_gateway_accepts_a_partner_signature_of_any_request(
    client_factory: ClientFactory,
) -> None:
    key = await client_factory.harness.create_partner()
    assert key.partner_id is not None
    await assert_gateway_accepts(
        client_factory, PartnerKey(key.id, key.partner_id, key.secret), "partner"
    )


async def test_gateway_accepts_a_service_signature_of_any_request(
    client_factory: ClientFactory,
) -> None:
    await assert_gateway_accepts(client_factory, client_factory.secret, "service")
