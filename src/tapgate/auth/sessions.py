"""Admin sessions. A session consists of one login and all tokens issued from it."""

import secrets
from datetime import datetime, timedelta

import asyncpg
import msgspec

from tapgate.auth.access_tokens import ACCESS_TOKEN_LIFETIME, AccessTokens
from tapgate.auth.cache import Cache
from tapgate.auth.last_seen import LastSeen
from tapgate.auth.owners import build_owner
from tapgate.auth.principals import Principal
from tapgate.auth.rate_limit_cost import NO_COST, RateLimitCost
from tapgate.auth.second_factors import Factors
from tapgate.core.id_generator import IdGenerator
from tapgate.core.vault import Vault
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_values
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction, open_transaction
from tapgate_client import ids
from tapgate_client.clock import Clock
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminStatus, Tokens

REFRESH_LIFETIME = timedelta(days=30)
#: Age after which a session cannot be refreshed. Its last access token can be valid for another
#: day.
SESSION_LIFETIME = timedelta(days=90)

#: Per admin. A login beyond the limit deletes the oldest session.
MAX_SESSIONS = 100
#: Per session. Used tokens are kept to detect reuse, so their number must be bounded. A further
#: refresh ends the session.
MAX_REFRESHES = 10_000

#: Time without a request after which a console session ends, unless a setting says otherwise.
DEFAULT_CONSOLE_IDLE = timedelta(minutes=60)

_MAX_USER_AGENT_LENGTH = 200
_TOPIC = "sessions"
_HASH_PURPOSE = "refresh_token"
_RANDOM_BYTES = 32
_MAX_SEEN_SESSIONS = 10_000


class SessionOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session was started from."""

    ip: str | None = None
    user_agent: str | None = None
    is_console: bool = False
    is_sso: bool = False


UNKNOWN_ORIGIN = SessionOrigin()


class TokenReuseError(ApiError):
    """A refresh token was reused. This is treated as theft, so the session has been ended."""

    def __init__(self, admin_id: int, session_id: int) -> None:
        super().__init__(
            Code.UNAUTHORIZED, "The refresh token was already used. The session has ended."
        )
        self.admin_id = admin_id
        self.session_id = session_id


class Sessions:
    def __init__(
        self,
        database: Database,
        signals: Signals,
        vault: Vault,
        clock: Clock,
        new_id: IdGenerator,
        *,
        access_tokens: AccessTokens,
        factors: Factors,
        idle_minutes: int | None = None,
    ) -> None:
        self._database = database
        self._signals = signals
        self._vault = vault
        self._clock = clock
        self._new_id = new_id
        self._access_tokens = access_tokens
        self._factors = factors
        idle = None if idle_minutes is None else timedelta(minutes=idle_minutes)
        #: Maximum time without a request, for API sessions and for console sessions.
        self.idle_limits = (idle, idle or DEFAULT_CONSOLE_IDLE)
        self.last_seen = LastSeen(database, clock, "sessions", "last_seen_at")
        #: When this process last saw a session that has an idle limit.
        self._seen_at: dict[int, datetime] = {}
        self._cache: Cache[int, Principal] = Cache(signals, _TOPIC, self._load)

    async def start(
        self,
        tx: Transaction,
        admin_id: int,
        *,
        has_verified_factor: bool = False,
        password_hash: str | None = None,
        origin: SessionOrigin = UNKNOWN_ORIGIN,
        id_token: str | None = None,
    ) -> Tokens:
        """Start a session for an admin who has been authenticated.

        `password_hash` is the hash with which the password was verified. If the password has been
        changed since, no session starts, because the change ended all sessions. The same applies to
        a factor that was enrolled since the login found none.

        If second factors are required and the admin has none, the session may only enroll one.
        Identity provider admins can only start sessions with single sign-on, so that the
        provider can end their access. Such a session keeps its `id_token`, sealed.
        """
        now = tx.now()
        admin = await tx.fetchrow(
            """UPDATE admins SET last_login_at = $2 WHERE id = $1 AND status = 'active'
                   AND ($3 OR NOT EXISTS (SELECT FROM admin_identities WHERE admin_id = $1))
                   AND password_hash = coalesce($4, password_hash)
               RETURNING id AS admin_id, email, role""",
            admin_id,
            now,
            origin.is_sso,
            password_hash,
        )
        if admin is None:
            raise ApiError(
                Code.UNAUTHORIZED,
                "This admin is disabled, has a new password or must use single sign-on.",
            )
        factors = await self._factors.list_enrolled(admin_id, tx)
        if factors and not has_verified_factor:
            raise ApiError(Code.UNAUTHORIZED, "A second factor was just enrolled. Log in again.")
        await _delete_expired(tx, admin_id, now)
        session_id = tx.new_id()
        enroll_only = self._factors.is_required and not factors
        await insert_values(
            tx,
            "sessions",
            id=session_id,
            admin_id=admin_id,
            created_at=now,
            last_seen_at=now,
            factor_at=now if has_verified_factor else None,
            enroll_only=enroll_only,
            ip=origin.ip,
            user_agent=origin.user_agent and origin.user_agent[:_MAX_USER_AGENT_LENGTH],
            is_console=origin.is_console,
            is_sso=origin.is_sso,
            sealed_id_token=id_token
            and self._vault.seal(id_token.encode(), build_id_token_context(session_id)),
        )
        await self._delete_oldest(tx, admin_id)
        tokens = await self._issue_tokens(tx, session_id, admin, now)
        return msgspec.structs.replace(tokens, enroll_only=True) if enroll_only else tokens

    async def refresh(self, refresh_token: str) -> Tokens:
        """Exchange a refresh token for new tokens. Token reuse ends the session.

        Runs in its own database transaction, because the end of a session must be committed
        although the request is rejected. If the session ends, waits up to one second for every
        process to apply the change.
        """
        now = self._clock()
        async with open_transaction(self._database, self._clock, self._new_id) as tx:
            token_row = await self._lock_token(tx, refresh_token)
            if token_row is None or not self._is_active(token_row, now):
                raise ApiError(
                    Code.UNAUTHORIZED,
                    "The refresh token is unknown or expired, or its session has ended.",
                )
            is_reused = token_row["used_at"] is not None
            if (
                not is_reused
                and await _count_used_tokens(tx, token_row["session_id"]) < MAX_REFRESHES
            ):
                return await self._rotate_token(tx, token_row, now)
            await self.end(tx, token_row["session_id"])
        if is_reused:
            raise TokenReuseError(token_row["admin_id"], token_row["session_id"])
        raise ApiError(
            Code.UNAUTHORIZED, "The session has reached its refresh limit. Log in again."
        )

    async def end(self, tx: Transaction, session_id: int) -> None:
        await tx.execute(
            """UPDATE sessions SET ended_at = $2, sealed_id_token = NULL
               WHERE id = $1 AND ended_at IS NULL""",
            session_id,
            tx.now(),
        )
        await self.publish_change(tx)

    async def end_all(
        self, tx: Transaction, admin_id: int, *, except_session: int | None = None
    ) -> None:
        """End an admin's sessions, for example when the admin is disabled."""
        await tx.execute(
            """UPDATE sessions SET ended_at = $2, sealed_id_token = NULL
               WHERE admin_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $3::bigint""",
            admin_id,
            tx.now(),
            except_session,
        )
        await self.publish_change(tx)

    async def get_id_token(self, session_id: int) -> str | None:
        """Return a single sign-on session's ID token, or None."""
        sealed = await self._database.fetchval(
            "SELECT sealed_id_token FROM sessions WHERE id = $1", session_id
        )
        if sealed is None:
            return None
        return self._vault.open(sealed, build_id_token_context(session_id)).decode()

    async def require_active(self, tx: Transaction, session_id: int) -> None:
        """Raise 401 if the session has ended since the request was authenticated."""
        is_active = await tx.fetchval(
            "SELECT true FROM sessions WHERE id = $1 AND ended_at IS NULL", session_id
        )
        if not is_active:
            raise _build_ended_error()

    async def mark_factor_verified(self, tx: Transaction, session_id: int) -> datetime:
        """Record that the admin was verified in this session; return when."""
        now = tx.now()
        await tx.execute("UPDATE sessions SET factor_at = $2 WHERE id = $1", session_id, now)
        await self.publish_change(tx)
        return now

    async def publish_change(self, tx: Transaction) -> None:
        """Make every process reload sessions. Waits up to one second for them after the commit."""
        await self._signals.publish_and_wait(tx, _TOPIC)

    def is_idle(self, *, is_console: bool, last_seen_at: datetime) -> bool:
        """Return whether a session has had no request for longer than its limit."""
        return last_seen_at <= self.get_idle_time(is_console=is_console)

    def get_idle_time(self, *, is_console: bool) -> datetime:
        """Return the time since which a session must have had a request."""
        limit = self.idle_limits[is_console]
        return self._clock() - (SESSION_LIFETIME * 2 if limit is None else limit)

    async def authenticate(
        self, access_token: str, cost: RateLimitCost = NO_COST, *, is_use: bool = True
    ) -> Principal:
        """Return the principal for an access token; raise 401 if the token or session is invalid.

        The role and name come from the database. The role in the token may be outdated, and the
        token contains no name. Unless `is_use`, as for pages that refresh automatically, the
        request does not extend a session that ends when it is idle.
        """
        token = self._access_tokens.verify(access_token, self._clock())
        principal = await self._cache.get(token.session_id, cost)
        if principal is None or principal.admin_id != token.admin_id:
            raise _build_ended_error()
        if self.idle_limits[principal.is_console] is not None:
            await self._require_recent_use(token.session_id, is_console=principal.is_console)
        if is_use:
            self._record_use(token.session_id)
        return principal

    def _record_use(self, session_id: int) -> None:
        if len(self._seen_at) >= _MAX_SEEN_SESSIONS:
            self._seen_at.clear()
        self._seen_at[session_id] = self._clock()
        self.last_seen.touch(session_id)

    async def _require_recent_use(self, session_id: int, *, is_console: bool) -> None:
        seen_at = self._seen_at.get(session_id)
        if seen_at is None or self.is_idle(is_console=is_console, last_seen_at=seen_at):
            # Another process may have seen the session more recently.
            seen_at = await self._database.fetchval(
                "SELECT coalesce(last_seen_at, created_at) FROM sessions WHERE id = $1", session_id
            )
        if seen_at is None or self.is_idle(is_console=is_console, last_seen_at=seen_at):
            self._seen_at.pop(session_id, None)
            raise ApiError(Code.UNAUTHORIZED, "The session was idle for too long. Log in again.")

    async def _delete_oldest(self, tx: asyncpg.Connection, admin_id: int) -> None:
        """Delete an admin's oldest sessions beyond `MAX_SESSIONS`."""
        removed = await tx.fetch(
            """DELETE FROM sessions WHERE id IN (
                   SELECT id FROM sessions WHERE admin_id = $1 ORDER BY id DESC OFFSET $2)
               RETURNING id""",
            admin_id,
            MAX_SESSIONS,
        )
        if removed:
            await self._signals.publish(tx, _TOPIC, "")

    async def _load(self, session_id: int) -> Principal | None:
        admin = await self._database.fetchrow(
            """SELECT admins.id, name, role, enroll_only, factor_at, is_console, is_sso,
                      sessions.created_at, owner_type, owner_id
               FROM sessions JOIN admins ON admins.id = admin_id
               WHERE sessions.id = $1 AND ended_at IS NULL AND status = 'active'""",
            session_id,
        )
        if admin is None:
            return None
        has_factor = bool(await self._factors.list_enrolled(admin["id"]))
        return Principal(
            kind="admin",
            id=ids.encode(ids.ADMIN, admin["id"]),
            name=admin["name"],
            role=admin["role"],
            admin_id=admin["id"],
            session_id=session_id,
            enroll_only=admin["enroll_only"],
            has_factor=has_factor,
            factor_at=admin["factor_at"],
            is_console=admin["is_console"],
            is_sso=admin["is_sso"],
            signed_in_at=admin["created_at"],
            owner=build_owner(admin["owner_type"], admin["owner_id"]),
            # Without a factor, a single sign-on admin signs in again at the provider.
            needs_step_up=has_factor or (admin["is_sso"] and self._factors.is_enabled),
        )

    async def _lock_token(
        self, tx: asyncpg.Connection, refresh_token: str
    ) -> asyncpg.Record | None:
        """Load a refresh token with its session and lock both rows.

        The locks ensure that the second of two concurrent uses finds the token used.
        """
        return await tx.fetchrow(
            """SELECT token_hash, expires_at, used_at, session_id, ended_at,
                      sessions.created_at AS began_at, admin_id, email, role, status,
                      is_console, coalesce(last_seen_at, sessions.created_at) AS last_seen_at,
                      enroll_only, is_sso
               FROM refresh_tokens
               JOIN sessions ON sessions.id = session_id
               JOIN admins ON admins.id = admin_id
               WHERE token_hash = ANY ($1)
               FOR NO KEY UPDATE OF refresh_tokens, sessions""",
            self._vault.list_keyed_hashes(_HASH_PURPOSE, refresh_token.encode()),
        )

    async def _rotate_token(
        self, tx: asyncpg.Connection, token_row: asyncpg.Record, now: datetime
    ) -> Tokens:
        await tx.execute(
            "UPDATE refresh_tokens SET used_at = $2 WHERE token_hash = $1",
            token_row["token_hash"],
            now,
        )
        self.last_seen.touch(token_row["session_id"])
        tokens = await self._issue_tokens(tx, token_row["session_id"], token_row, now)
        is_limited = token_row["enroll_only"]
        return msgspec.structs.replace(tokens, enroll_only=True) if is_limited else tokens

    async def _issue_tokens(
        self, tx: asyncpg.Connection, session_id: int, admin: asyncpg.Record, now: datetime
    ) -> Tokens:
        refresh_token = secrets.token_urlsafe(_RANDOM_BYTES)
        await tx.execute(
            "INSERT INTO refresh_tokens (token_hash, session_id, expires_at) VALUES ($1, $2, $3)",
            self._hash(refresh_token),
            session_id,
            now + REFRESH_LIFETIME,
        )
        return Tokens(
            token=self._access_tokens.issue(
                session_id=session_id,
                admin_id=admin["admin_id"],
                email=admin["email"],
                role=admin["role"],
                now=now,
            ),
            refresh_token=refresh_token,
            expires_in=int(ACCESS_TOKEN_LIFETIME.total_seconds()),
        )

    def _is_active(self, token_row: asyncpg.Record, now: datetime) -> bool:
        return bool(
            token_row["expires_at"] > now
            and token_row["began_at"] + SESSION_LIFETIME > now
            and token_row["ended_at"] is None
            and token_row["status"] == AdminStatus.ACTIVE
            # The provider must confirm at least once a day that the admin still has access.
            and not token_row["is_sso"]
            and not self.is_idle(
                is_console=token_row["is_console"], last_seen_at=token_row["last_seen_at"]
            )
        )

    def _hash(self, refresh_token: str) -> bytes:
        return self._vault.keyed_hash(_HASH_PURPOSE, refresh_token.encode())


def build_id_token_context(session_id: int) -> bytes:
    """Return the vault context that binds a sealed ID token to its session."""
    return b"id_token %d" % session_id


def _build_ended_error() -> ApiError:
    return ApiError(Code.UNAUTHORIZED, "The session has ended. Log in again.")


async def _count_used_tokens(tx: asyncpg.Connection, session_id: int) -> int:
    count: int = await tx.fetchval(
        "SELECT count(*) FROM refresh_tokens WHERE session_id = $1 AND used_at IS NOT NULL",
        session_id,
    )
    return count


async def _delete_expired(tx: asyncpg.Connection, admin_id: int, now: datetime) -> None:
    """Delete the admin's sessions whose refresh tokens all expired more than a day ago.

    The one-day margin keeps a session whose last refresh token is being exchanged concurrently.
    """
    await tx.execute(
        """DELETE FROM sessions WHERE admin_id = $1 AND NOT EXISTS (
               SELECT FROM refresh_tokens
               WHERE session_id = sessions.id AND expires_at > $2::timestamptz - interval '1 day'
           )""",
        admin_id,
        now,
    )
