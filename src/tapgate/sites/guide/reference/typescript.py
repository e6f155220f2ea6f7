"""TypeScript examples: a call of the client with the values of a request."""

import json
import re
from typing import Any, Final

from tapgate.sites.guide.reference.operations import Operation, to_camel_case
from tapgate.sites.guide.reference.requests import ExampleRequest

_CREDENTIALS: Final = {
    "apiKey": ("bearer", "key"),
    "adminToken": ("bearer", "token"),
    "posSignature": ("posKey", "keyId, secret"),
    "partnerSignature": ("partnerKey", "keyId, partnerId, secret"),
    "serviceSignature": ("serviceSecret", "name, secret"),
}
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_MAX_LINE_LENGTH: Final = 60


def render_typescript(operation: Operation, request: ExampleRequest, *, is_list: bool) -> str:
    arguments = [json.dumps(value) for value in request.path_values.values()]
    if request.body is not None:
        arguments.append(_render_value(request.body))
    elif operation.body_media:
        arguments.append("file")
    if request.query:
        arguments.append(_render_value(request.query))
    call = f"client.{to_camel_case(operation.id)}({', '.join(arguments)})"
    code = f"for await (const record of {call}) {{\n  console.log(record);\n}}"
    if not is_list:
        code = f"const result = await {call};"
    credential, values = _CREDENTIALS.get(operation.scheme or "", ("", ""))
    names = ", ".join(filter(None, ["TapgateClient", credential]))
    passed = f", {credential}({values})" if credential else ""
    return (
        f'import {{ {names} }} from "tapgate";\n\n'
        f"const client = new TapgateClient(url{passed});\n{code}"
    )


def _render_value(value: Any, indent: int = 0) -> str:
    """Return a JSON value as a literal, on one line if it is short."""
    if isinstance(value, dict) and value:
        items = [
            f"{_render_key(name)}: {_render_value(item, indent + 2)}"
            for name, item in value.items()
        ]
        opening, closing = "{", "}"
        line = f"{{ {', '.join(items)} }}"
    elif isinstance(value, list) and value:
        items = [_render_value(item, indent + 2) for item in value]
        opening, closing = "[", "]"
        line = f"[{', '.join(items)}]"
    else:
        return json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= _MAX_LINE_LENGTH and "\n" not in line:
        return line
    lines = "".join(f"{' ' * (indent + 2)}{item},\n" for item in items)
    return f"{opening}\n{lines}{' ' * indent}{closing}"


def _render_key(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)
