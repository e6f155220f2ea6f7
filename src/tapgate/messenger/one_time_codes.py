"""One-time codes that verify the phone number of a person whose address does not contain it."""

from datetime import timedelta

from tapgate.ledger.one_time_codes import send_limit
from tapgate.ledger.one_time_codes.codes import CODE_LIFETIME, MAX_ATTEMPTS, generate_code
from tapgate.messenger import chat_rate_limits
from tapgate.messenger.model import Person, RequestRejected, RequestSucceeded, Template
from tapgate.messenger.outbox import outbox_messages as outbox
from tapgate.messenger.services import Services
from tapgate_client.errors import Code

#: Limit per requesting person; `send_limit` limits the codes per phone number.
MAX_CODES_PER_HOUR = 5
_HOUR = timedelta(hours=1)
_TEMPLATE_NAME = "one_time_code"
_HASH_PURPOSE = "messenger code"


async def send_code(services: Services, person: Person, phone: str) -> None:
    """Send a code within the limits per phone number and per person who requests it.

    Above a limit, no code is sent but the reply is the same, so that the requester learns nothing
    about a number that may belong to another person.
    """
    now = services.clock()
    rate_limit_key = f"codes by:{person.address}"
    if await chat_rate_limits.acquire(
        services.database, rate_limit_key, limit=MAX_CODES_PER_HOUR, now=now, window=_HOUR
    ):
        return
    code = generate_code()
    async with services.database.transaction() as tx:
        if await send_limit.reserve(tx, phone, now) is not None:
            return
        await tx.execute(
            """INSERT INTO messenger.codes (address, phone, code_hash, tries_left, expires_at)
               VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (address) DO UPDATE SET phone = excluded.phone,
                   code_hash = excluded.code_hash, tries_left = excluded.tries_left,
                   expires_at = excluded.expires_at""",
            person.address,
            phone,
            services.vault.keyed_hash(_HASH_PURPOSE, _build_hashed_text(person, phone, code)),
            MAX_ATTEMPTS,
            now + CODE_LIFETIME,
        )
        language = person.language or "en"
        message = Template(name=_TEMPLATE_NAME, language=language, parameters=(code,))
        await outbox.enqueue(tx, services, phone, message)
    services.wake_sender()


async def verify_code(
    services: Services, person: Person, phone: str, code: str
) -> RequestSucceeded | RequestRejected:
    """Return whether the code is correct; reject if no valid code or no further attempt is left.

    Each attempt is consumed before the comparison, so concurrent attempts cannot exceed the limit.
    """
    row = await services.database.fetchrow(
        """UPDATE messenger.codes SET tries_left = tries_left - 1
           WHERE address = $1 AND phone = $2 AND tries_left > 0 AND expires_at > $3
           RETURNING code_hash, tries_left""",
        person.address,
        phone,
        services.clock(),
    )
    is_correct = row is not None and services.vault.matches_hash(
        row["code_hash"], _HASH_PURPOSE, _build_hashed_text(person, phone, code)
    )
    if row is None or not (is_correct or row["tries_left"]):
        return RequestRejected(code=Code.INVALID_OTP)
    if not is_correct:
        return RequestSucceeded(result=False)
    await services.database.execute(
        "DELETE FROM messenger.codes WHERE address = $1", person.address
    )
    return RequestSucceeded(result=True)


def _build_hashed_text(person: Person, phone: str, code: str) -> bytes:
    return f"{person.address} {phone} {code}".encode()
