"""Demo users of a merchant, the partner and an agent, with one known password."""

from typing import Final, NamedTuple

from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.auth.owners import OWNER_TYPES, Owner
from tapgate.business.staff import operations
from tapgate.http.api.services import Services
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.owners import OwnerType
from tapgate_sandbox.demo.people import Country

#: The demo never runs in production.
PASSWORD: Final = "tapgate demo users"  # noqa: S105


class DemoUser(NamedTuple):
    email: str
    name: str
    role: AdminRole
    shop: int = 0  # number of the shop, for merchants


USERS: Final = (
    DemoUser("manager@demo.example", "Musa Bangura", AdminRole.MERCHANT_MANAGER),
    DemoUser("manager2@demo.example", "Isata Sesay", AdminRole.MERCHANT_MANAGER, shop=1),
    DemoUser("cashier@demo.example", "Foday Conteh", AdminRole.MERCHANT_CASHIER),
    DemoUser("partner@demo.example", "Mariama Jalloh", AdminRole.PARTNER_USER),
    DemoUser("agent@demo.example", "Ibrahim Koroma", AdminRole.AGENT_USER),
)


async def create_users(services: Services, country: Country) -> None:
    """Create two managers, a cashier, a partner user and an agent user."""
    password_hash = await services.authenticator.passwords.hash(PASSWORD)
    for user in USERS:
        owner_type = OWNER_TYPES[user.role]
        owner_id = {
            OwnerType.PROCESSOR: country.shops[user.shop % len(country.shops)].id,
            OwnerType.PARTNER: country.partner_id,
            OwnerType.AGENT: country.agents[0].id,
        }[owner_type]
        async with services.transaction() as tx:
            await operations.create(
                tx,
                SYSTEM_ACTOR,
                email=user.email,
                name=user.name,
                role=user.role,
                password_hash=password_hash,
                makers={},
                owner=Owner(owner_type, owner_id),
            )
