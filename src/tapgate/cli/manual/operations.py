"""One operation of the interface as a section of a page."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tapgate.cli.manual.markdown import code, fenced, link, table
from tapgate.cli.manual.requests import curl
from tapgate.cli.manual.schemas import Field, Schema, Schemas
from tapgate.errors import Code

_REPLAY = "#/components/parameters/IdempotencyKey"
_ERRORS = "../errors.md"
_REPEATABLE = (
    "Repeatable under `request_id` or the header `Idempotency-Key`: see"
    " [Idempotency](README.md#idempotency)."
)


class Operation(NamedTuple):
    """What is described alike is one operation, also when it is served at several paths."""

    names: tuple[tuple[str, str], ...]  # method and path
    described: dict[str, Any]

    @property
    def summary(self) -> str:
        return str(self.described["summary"])

    @property
    def body(self) -> Schema | None:
        """The schema of what is sent, where it is described."""
        content = self.described.get("requestBody", {}).get("content", {})
        return next((one["schema"] for one in content.values() if "schema" in one), None)

    @property
    def answer(self) -> Schema | None:
        """The schema of what is answered in success, where it is described."""
        content = self._success.get("content", {})
        return next((one["schema"] for one in content.values()), None)

    @property
    def _success(self) -> dict[str, Any]:
        found: dict[str, Any] = self.described["responses"][self._status]
        return found

    @property
    def _status(self) -> str:
        return str(next(iter(self.described["responses"])))

    def section(self, schemas: Schemas) -> Iterator[str]:
        """What stands under the heading, block by block."""
        yield "\\\n".join(code(f"{method} {path}") for method, path in self.names)
        yield self.described["description"]
        if {"$ref": _REPLAY} in self.described["parameters"]:
            yield _REPEATABLE
        for place in ("path", "query"):
            fields = [
                schemas.field(one["name"], one["schema"], required=one.get("required", False))
                for one in self.described["parameters"]
                if one.get("in") == place
            ]
            if fields:
                yield f"**{place.capitalize()}**"
                yield taken(fields)
        yield from self._body(schemas)
        yield "**Example**"
        yield fenced(curl(*self.names[0], self.described), "sh")
        yield from self._answer(schemas)
        yield from self._errors()

    def _body(self, schemas: Schemas) -> Iterator[str]:
        if "requestBody" not in self.described:
            return
        media = self.described["requestBody"]["content"]
        limit = str(self.described["requestBody"]["description"])
        shown = "" if limit == _USUAL_LIMIT else f", {limit[0].lower()}{limit[1:]}"
        names = [] if self.body is None else schemas.names_in(self.body)
        kinds = "" if list(media) == ["application/json"] else f" ({' or '.join(map(code, media))})"
        yield f"**Body**{kinds}{shown}"
        if not names:
            yield "The bytes of a file."
        for name in names:
            yield taken(schemas.fields(name))

    def _answer(self, schemas: Schemas) -> Iterator[str]:
        yield f"**Answer** {self._status}"
        if self.answer is None:
            yield "No body."
            return
        names = schemas.names_in(self.answer)
        if not names:
            yield f"{' or '.join(map(code, self._success['content']))}."
        elif "$ref" not in self.answer or names[0] in schemas.links:
            yield f"{schemas.type(self.answer)}."
        for name in names:
            if name not in schemas.links:
                yield given(schemas.fields(name))

    def _errors(self) -> Iterator[str]:
        refusals = [
            (status, _codes(response))
            for status, response in self.described["responses"].items()
            if status != self._status
        ]
        own = [(status, codes) for status, codes in refusals if codes not in _ALWAYS]
        always = [f"{status} {codes}" for status, codes in refusals if codes in _ALWAYS]
        yield "**Errors**"
        if own:
            yield table(("Status", "Codes"), own)
        yield f"As everywhere: {', '.join(always)}."


def _codes(response: dict[str, Any]) -> str:
    """Links to the codes; another status may also have the answer of success."""
    examples = next(iter(response["content"].values())).get("examples", {})
    return ", ".join(map(_error, examples)) or "the answer above"


def _error(name: str) -> str:
    return link(code(name), f"{_ERRORS}#{name.lower()}")


#: Not repeated on every page.
_USUAL_LIMIT = "At most 16 KiB"
_ALWAYS = {
    _error(name) for name in (Code.RATE_LIMITED, Code.INTERNAL_ERROR, Code.SERVICE_UNAVAILABLE)
}


def taken(fields: Iterable[Field]) -> str:
    return table(
        ("Field", "Type", "Required", "Rule", "Example"),
        [
            (
                code(field.name),
                field.type.removesuffix(" or null"),  # null is as absent, everywhere
                "yes" if field.required else "no",
                field.rule,
                "" if field.example is None else _example(field.example),
            )
            for field in fields
        ],
    )


def given(fields: Iterable[Field]) -> str:
    return table(
        ("Field", "Type"),
        [
            (code(field.name), f"{field.type}, {field.rule}" if field.is_choice else field.type)
            for field in fields
        ],
    )


def _example(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(code(item) for item in value if not isinstance(item, dict))
    if isinstance(value, dict):
        return ""
    return code(value)
