"""Types in which strings replace enums, to decode values that an enum does not have.

msgspec stops at the first unknown enum value. The gateway decodes such a body again with the
open type, to report every invalid field. A client decodes such a response again, because a newer
gateway may return values that the client does not know.
"""

from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from tapgate_client.schemas.fields import get_enum_rule

_ENUM_ERROR = "Invalid enum value"


def is_unknown_value(error: msgspec.DecodeError) -> bool:
    """Return whether a decoder failed on an unknown enum value."""
    return isinstance(error, msgspec.ValidationError) and str(error).startswith(_ENUM_ERROR)


@cache
def open_enums(kind: Any) -> Any:
    """Return a type that accepts any string for each enum in `kind`.

    Fields keep their enum rules. A struct becomes a subclass with the same name.
    """
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Annotated[str, get_enum_rule(kind)]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _open_struct(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bare, *notes = arguments
        opened = str if isinstance(bare, type) and issubclass(bare, Enum) else open_enums(bare)
        return Annotated[opened, *notes]
    if origin in (Union, UnionType):
        return Union[tuple(map(open_enums, arguments))]  # noqa: UP007 - the members are dynamic
    if origin is None or not arguments:
        return kind
    return origin[tuple(map(open_enums, arguments))]


def _open_struct(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    fields = [(item, open_enums(item.type)) for item in msgspec.structs.fields(kind)]
    changed = [
        (
            item.name,
            opened,
            msgspec.field(default_factory=item.default_factory, name=item.encode_name)
            if item.default_factory is not msgspec.NODEFAULT
            else msgspec.field(default=item.default, name=item.encode_name),
        )
        for item, opened in fields
        if opened != item.type
    ]
    return (
        msgspec.defstruct(kind.__name__, changed, bases=(kind,), kw_only=True) if changed else kind
    )
