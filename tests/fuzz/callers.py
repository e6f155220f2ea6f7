"""Every kind of credential, as a request signer."""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from drivers.actors import Admin, require_success
from fuzz.installation import APP_SECRET, BRIDGE_TOKEN, Installation
from harness import BearerAuth, HmacAuth, ServiceAuth
from tapgate.http.api.access import ROLES_BY_LETTER
from tapgate_client import signing
from tapgate_client.schemas.admin import AdminRole, Scope


class BodyHmacAuth(httpx2.Auth):
    """Webhook signature, which covers only the body."""

    requires_request_body = True

    def __init__(self, header: str, secret: str, prefix: str = "") -> None:
        self._header = header
        self._secret = secret.encode()
        self._prefix = prefix

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        signature = signing.webhook_signature(self._secret, request.content)
        request.headers[self._header] = self._prefix + signature
        yield request


@dataclass(frozen=True)
class Caller:
    name: str
    auth: httpx2.Auth | None
    #: Field values that belong to the credential, by field name.
    values: Mapping[str, Any] = field(default_factory=dict)
    #: IDs of own records by resource path, for an owner's user or key; empty for the platform's.
    own_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_owner(self) -> bool:
        """Whether the caller is limited to the data of a merchant, a partner or an agent."""
        return bool(self.own_ids)

    def find_own_id(self, path: str) -> str | None:
        """Return an own record that a path with `{id}` can name."""
        resource = path.removeprefix("/api/v1/").partition("/{id}")[0]
        return self.own_ids.get(resource)

    def sign(self, request: httpx2.Request) -> None:
        if self.auth is not None:
            next(self.auth.sync_auth_flow(request))


ANONYMOUS = Caller("anonymous", None)


class Callers:
    """Callers by name, and the selection of those that an operation allows."""

    def __init__(self, callers: Iterable[Caller]) -> None:
        self.by_name = {caller.name: caller for caller in callers}

    @property
    def all(self) -> list[Caller]:
        return list(self.by_name.values())

    @property
    def owners(self) -> "Callers":
        return Callers(caller for caller in self.all if caller.is_owner)

    def list_allowed(self, operation: Mapping[str, Any], path: str) -> list[Caller]:
        """Return the callers that the operation allows, or the anonymous caller if it is public."""
        if path.startswith("/api/v1/webhooks/partners/"):
            return [self.by_name["webhook"]]
        names = [name for choice in operation["security"] for name in _list_caller_names(choice)]
        names += [key for role, key in _OWNER_KEYS.items() if role in names]
        if path in _CASH_PATHS:
            names.append(_OWNER_KEYS[AdminRole.AGENT_USER])
        return [self.by_name[name] for name in names if name in self.by_name] or [ANONYMOUS]


def _list_caller_names(choice: Mapping[str, list[str]]) -> list[str]:
    if "apiKey" in choice:
        return [f"key {choice['apiKey'][0]}", "key of all scopes"]
    if "adminToken" in choice:
        return choice["adminToken"]
    for scheme, names in _CALLERS_BY_SCHEME.items():
        if scheme in choice:
            return names
    return []


#: API keys of owners by the role whose operations they have, and the only ones beyond the role.
_OWNER_KEYS = {
    AdminRole.MERCHANT_MANAGER: "key of processor",
    AdminRole.PARTNER_USER: "key of partner",
    AdminRole.AGENT_USER: "key of agent",
}
_CASH_PATHS = ("/api/v1/agents/cashin", "/api/v1/agents/cashout")
_CALLERS_BY_SCHEME = {
    "posSignature": ["processor", "terminal"],
    "partnerSignature": ["partner", "other book"],
    "serviceSignature": ["service"],
    "hubSignature": ["channel"],
    "bridgeToken": ["bridge"],
}


async def create_callers(
    installation: Installation, ada: Admin, owners: Iterable[Caller]
) -> Callers:
    """Create callers with records of their own, which fuzzed requests do not disable."""
    created = [
        ANONYMOUS,
        *owners,
        *await _create_api_key_callers(ada),
        *await _create_admin_callers(ada),
    ]
    created += [*await _create_merchant_callers(ada), *await _create_partner_callers(ada)]
    book = installation.other_book
    secrets = installation.settings.service_secrets
    created += [
        Caller("other book", book.auth, {"partner_id": book.id}),
        Caller("service", ServiceAuth("messenger", secrets["messenger"])),
        Caller("channel", BodyHmacAuth("X-Hub-Signature-256", APP_SECRET, "sha256=")),
        Caller("bridge", BearerAuth(BRIDGE_TOKEN, "bridge")),
    ]
    return Callers(created)


async def _create_api_key_callers(ada: Admin) -> list[Caller]:
    scoped = [Caller(f"key {scope}", (await ada.create_app(scope)).auth) for scope in Scope]
    return [*scoped, Caller("key of all scopes", (await ada.create_app()).auth)]


async def _create_admin_callers(ada: Admin) -> list[Caller]:
    return [
        Caller(role, (await ada.create_admin("Fuzz", letter)).auth)
        for letter, role in ROLES_BY_LETTER.items()
    ]


async def _create_merchant_callers(ada: Admin) -> list[Caller]:
    merchant, suspended = await ada.create_merchant(), await ada.create_merchant()
    pos_terminal, terminal = await ada.create_terminal(merchant, "Till")
    blocked, blocked_terminal = await ada.create_terminal(merchant, "Blocked")
    require_success(await ada.post(f"processors/{suspended.id}/suspend", reason="fuzzing"))
    require_success(
        await ada.post(f"processors/{merchant.id}/terminals/{blocked_terminal['id']}/block")
    )
    return [
        Caller("processor", merchant.server.auth, {"terminal_id": terminal["id"]}),
        Caller("terminal", pos_terminal.auth, {"terminal_id": terminal["id"]}),
        Caller("suspended processor", suspended.server.auth),
        Caller("blocked terminal", blocked.auth),
    ]


async def _create_partner_callers(ada: Admin) -> list[Caller]:
    callers = []
    for name in ("partner", "suspended partner"):
        created = require_success(
            await ada.post("admin/partners", name="Bank", overdraft_limit="0")
        )
        partner = created["partner"]["id"]
        require_success(await ada.post(f"admin/partners/{partner}/fund", amount="900000"))
        key = HmacAuth(created["api_key_id"], created["hmac_secret"], partner)
        callers.append(Caller(name, key, {"partner_id": partner}))
        if name == "partner":
            webhook = BodyHmacAuth("X-Webhook-Signature", created["webhook_secret"])
            callers.append(Caller("webhook", webhook, {"partner_id": partner}))
        else:
            require_success(await ada.post(f"admin/partners/{partner}/suspend"))
    return callers
