"""Setting declarations: one object per environment variable, with all its facts.

Reading and validation, the effective settings, the comparison between nodes, the console's labels,
docs/settings.md and the templates in deploy/ are derived from these objects.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar, Final, Generic, NoReturn, Self, TypeVar, overload

import msgspec

from tapgate.core.settings.value_types import ValueType
from tapgate_client.schemas.nodes import NodeRole

VARIABLE_PREFIX: Final = "TAPGATE_"
#: Default for a setting that must be set if its optional group is set.
MISSING: Any = object()

T = TypeVar("T")
#: The values that are already known, by the attribute's name.
Values = Mapping[str, Any]


class SettingsError(Exception):
    """A setting is invalid. The message is one line for the operator, without secrets."""


class Secrecy(Enum):
    """Whether a value is hidden, and how staging and production check it."""

    PUBLIC = "public"
    #: Never shown.
    HIDDEN = "hidden"
    #: Hidden, and must differ from other secrets and from the documented examples.
    UNIQUE = "unique"
    #: Unique, and must be hard to guess.
    STRONG = "strong"


class Match(Enum):
    """What happens if two nodes have different values."""

    #: Nodes are not compared.
    NONE = "none"
    WARN = "warn"
    #: Warns in staging and production; elsewhere, nodes on one machine have different defaults.
    WARN_IN_PRODUCTION = "warn in production"
    #: The node must not run: it would reject valid requests or count limits wrongly.
    REFUSE = "refuse"


class Setting(Generic[T]):
    """Setting declaration: `settings.port` is the value, `Settings.port` the declaration."""

    #: Attribute name.
    name: str
    #: Group title in the console and the documentation.
    group: str

    def __init__(
        self,
        value_type: ValueType[T],
        default: T | Callable[[Values], T],
        label: str,
        description: str,
        *,
        #: The label in French.
        french: str,
        example: str,
        #: Recommendation for production.
        production: str = "",
        #: Whether staging and production do not start without it.
        required: bool = False,
        #: Whether a value is generated if the variable is not set.
        generated: bool = False,
        secrecy: Secrecy = Secrecy.PUBLIC,
        match: Match = Match.NONE,
        #: The only service that uses it; None for both.
        used_by: NodeRole | None = None,
        #: Value in the templates in deploy/; None if they do not set it.
        template: str | None = None,
        #: Whether the templates list it commented out.
        suggested: bool = False,
    ) -> None:
        self.value_type = value_type
        self.default = default
        self.label = label
        self.description = description
        self.french = french
        self.example = example
        self.production = production
        self.required = required
        self.generated = generated
        self.secrecy = secrecy
        self.match = match
        self.used_by = used_by
        self.template = template
        self.suggested = suggested

    def __set_name__(self, owner: "type[SettingGroup]", name: str) -> None:
        self.name = name
        self.group = owner.title
        self.variable = f"{VARIABLE_PREFIX}{owner.prefix}{name.upper()}"

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object, owner: type) -> Self | T:
        # An instance has the value in its `__dict__`, which takes precedence over this method.
        if instance is None:
            return self
        raise AttributeError(self.name)

    @property
    def is_secret(self) -> bool:
        return self.secrecy is not Secrecy.PUBLIC

    @property
    def is_confidential(self) -> bool:
        """Whether deployments keep the value in a secret, not among other settings."""
        return self.is_secret or self.value_type.may_contain_credentials

    def list_variables(self) -> "list[Setting[Any]]":
        """Return the declared environment variables that the value consists of."""
        return [self]

    def read(self, environ: Mapping[str, str], environment: str, *, strict: bool) -> T | None:
        """Return the variable's value, or None if it is not set.

        An empty variable counts as unset, unless the type accepts empty text. `strict` applies the
        staging and production rules.
        """
        text = environ.get(self.variable)
        if not text and self.required and strict:
            raise self.build_error(f"must be set in {environment}")
        if text is None or (not text and not self.value_type.accepts_empty):
            return None
        try:
            return (self.value_type.parse_strictly if strict else self.value_type.parse)(text)
        except ValueError as error:
            raise self.build_error(str(error)) from None

    def list_compared(self, value: T) -> dict[str, object]:
        """Return what nodes compare, by name: a value, or each dictionary entry."""
        if isinstance(value, dict):
            return {f"{self.variable} ({key})": item for key, item in value.items()}
        return {self.variable: value}

    def build_error(self, message: str) -> SettingsError:
        return SettingsError(f"{self.variable} {message}")


class OptionalSetting(Setting[T | None]):
    """Setting that is None unless its variable is set."""

    def __init__(
        self, value_type: ValueType[T], label: str, description: str, **facts: Any
    ) -> None:
        super().__init__(value_type, None, label, description, **facts)


class SettingGroup:
    """Immutable values of declared settings. A subclass declares a group of them."""

    title: ClassVar[str] = ""
    #: Follows `VARIABLE_PREFIX` in variable names.
    prefix: ClassVar[str] = ""
    declared: ClassVar[dict[str, Setting[Any]]] = {}

    def __init_subclass__(cls) -> None:
        # A subclass of several groups has all their settings, in the same order.
        inherited = (
            item
            for base in cls.__bases__
            if issubclass(base, SettingGroup)
            for item in base.declared.values()
        )
        own = (item for item in vars(cls).values() if isinstance(item, Setting))
        cls.declared = {item.name: item for item in (*inherited, *own)}

    def __init__(self, **values: Any) -> None:
        if values.keys() != self.declared.keys():
            raise TypeError(f"missing or unknown: {sorted(values.keys() ^ self.declared.keys())}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("settings are immutable: use replace()")

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values."""
        if unknown := changes.keys() - self.declared.keys():
            raise TypeError(f"unknown: {sorted(unknown)}")
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__ | changes)
        return copy

    @classmethod
    def list_variables(cls) -> list[Setting[Any]]:
        """Return all environment variable declarations."""
        return [item for setting in cls.declared.values() for item in setting.list_variables()]


G = TypeVar("G", bound=SettingGroup)


class OptionalGroup(Setting[G | None]):
    """Group that is None unless its first variable is set."""

    def __init__(self, group_type: type[G], label: str, **facts: Any) -> None:
        super().__init__(ValueType(), None, label, "", example="", **facts)
        self._group_type = group_type
        self._first, *_ = group_type.declared.values()

    def list_variables(self) -> list[Setting[Any]]:
        return self._group_type.list_variables()

    def read(self, environ: Mapping[str, str], environment: str, *, strict: bool) -> G | None:
        if not environ.get(self._first.variable):
            return None
        values = read_values(self._group_type, environ, environment, strict=strict)
        for name, setting in self._group_type.declared.items():
            if values[name] is MISSING:
                raise setting.build_error(f"must be set if {self._first.variable} is set")
        return self._group_type(**values)

    def list_compared(self, value: G | None) -> dict[str, object]:
        names = self._group_type.declared
        values = value and msgspec.json.encode({name: getattr(value, name) for name in names})
        return {self._first.variable: values}


def read_values(
    group_type: type[SettingGroup], environ: Mapping[str, str], environment: str, *, strict: bool
) -> dict[str, Any]:
    """Return the values of a group's settings, or their defaults if variables are not set."""
    values: dict[str, Any] = {}
    derived = []
    for item in group_type.declared.values():
        value = item.read(environ, environment, strict=strict)
        if value is None and callable(item.default):
            derived.append(item)  # until all values that it may depend on are known
        else:
            values[item.name] = item.default if value is None else value
    for item in derived:
        values[item.name] = item.default(values)
    return values
