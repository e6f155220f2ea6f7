"""Parts that several portal pages share."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tapgate.sites.console.actions import Action
from tapgate.sites.console.page_request import PageRequest
from tapgate_client.schemas.owners import OwnerType


def get_owner_id(request: PageRequest) -> str:
    """Return the ID of the viewer's processor, partner or agent."""
    owner = request.principal.owner
    assert owner is not None, "only users with an owner reach the portal"
    return owner.public_id


def get_owner_type(request: PageRequest) -> OwnerType:
    owner = request.principal.owner
    assert owner is not None, "only users with an owner reach the portal"
    return owner.type


def is_merchant(request: PageRequest) -> bool:
    return get_owner_type(request) is OwnerType.PROCESSOR


def find_action(actions: Iterable[Action], name: str, **changes: Any) -> Action:
    """Return a console action, with other texts or fields for an owner."""
    action = next(action for action in actions if action.name == name)
    return msgspec.structs.replace(action, **changes)
