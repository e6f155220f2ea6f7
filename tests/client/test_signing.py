"""The gateway's authenticator accepts the client's signature of any request."""

import asyncio

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from drivers.in_process import GATEWAY_URL, AppTransport, ClientFactory
from tapgate.client import NO_RETRIES, AsyncTapgateClient, Credential, PartnerKey, PosKey
from tapgate.client.operation import Operation, build_operation
from tapgate.http.messages import Request, Response

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
        request = gateway._own_transport.send(build_test_operation(*arguments))
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
