"""Changes to GL codes."""

from typing import Final

from tapgate.auth.actors import Actor
from tapgate.business.finance.general_ledger import queries
from tapgate.business.finance.general_ledger.journal_formats import to_account_component
from tapgate.events.audit.trail import AuditTrail
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.general_ledger import AccountKind, GlCode, GlCodes, GlCodeUpdate

_trail: Final = AuditTrail("gl_codes")


async def update_codes(tx: Transaction, actor: Actor, updates: list[GlCodeUpdate]) -> GlCodes:
    """Change the GL codes for the given kinds. All other kinds keep their codes."""
    await queries.lock_codes(tx)
    before = {code.kind: code for code in await queries.list_codes(tx)}
    after = {**before, **{update.kind: _apply(update, before) for update in updates}}
    _require_unique(updates, after)
    changed = [code for kind, code in after.items() if code != before[kind]]
    if changed:
        await queries.update_codes(tx, changed)
        await _trail.record(
            tx,
            actor,
            None,
            "updated",
            changes={
                code.kind: (_describe(before[code.kind]), _describe(code)) for code in changed
            },
        )
    return GlCodes(data=await queries.list_codes(tx))


def _apply(update: GlCodeUpdate, before: dict[AccountKind, GlCode]) -> GlCode:
    name = before[update.kind].name if update.name is None else update.name
    return GlCode(kind=update.kind, gl_code=update.gl_code, name=name)


def _describe(code: GlCode) -> dict[str, str]:
    return {"gl_code": code.gl_code, "name": code.name}


def _require_unique(updates: list[GlCodeUpdate], after: dict[AccountKind, GlCode]) -> None:
    """Reject a kind that is listed twice, and a code that two kinds would share.

    Codes must also differ in accounting files, which replace dots.
    """
    problems: dict[str, str] = {}
    seen: set[str] = set()
    kinds_by_code: dict[str, list[str]] = {}
    for code in after.values():
        kinds_by_code.setdefault(to_account_component(code.gl_code), []).append(code.kind)
    for index, update in enumerate(updates):
        if update.kind in seen:
            problems[f"data[{index}].kind"] = "must not appear more than once"
        seen.add(update.kind)
        kinds = kinds_by_code.get(to_account_component(update.gl_code), [])
        others = [kind for kind in kinds if kind != update.kind]
        if others:
            problems[f"data[{index}].gl_code"] = f"is already used by {others[0]}"
    if problems:
        message = "; ".join(f"{path} {text}" for path, text in problems.items())
        raise ApiError(Code.VALIDATION_FAILED, message, details={"fields": problems})
