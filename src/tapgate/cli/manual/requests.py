"""An example of a request for the shell, with the kind of credential that it needs."""

import json
import shlex
from typing import Any

_JSON = "application/json"
_FORM = "multipart/form-data"
_LONGEST_LINE = 72


def curl(method: str, path: str, operation: dict[str, Any]) -> str:
    for parameter in operation["parameters"]:
        if parameter.get("in") == "path":
            (example,) = parameter["schema"]["examples"]
            path = path.replace(f"{{{parameter['name']}}}", example)
    options = [f"curl -s {_method(method, operation)}$TAPGATE{path}"]
    content = operation.get("requestBody", {}).get("content", {})
    signer = _signer(operation["security"])
    if _JSON in content and "example" in content[_JSON]:
        body = _shown(content[_JSON]["example"])
        if signer:
            options += [f"$({signer} {method} {path} {_SIGNED[signer]})", '-d "$BODY"']
            return f"BODY={shlex.quote(body)}\n{_joined(options)}"
        return _joined([*options, *_credential(method, path, operation), f"-d {shlex.quote(body)}"])
    return _joined([*options, *_credential(method, path, operation), *_file(content)])


def _method(method: str, operation: dict[str, Any]) -> str:
    implied = "POST" if "requestBody" in operation else "GET"
    return "" if method == implied else f"-X {method} "


_POS, _PARTNER = "tapgate sign pos", "tapgate sign partner"
_SIGNED = {
    _POS: '-d "$BODY" --key-id $KEY_ID --secret $SECRET',
    _PARTNER: '-d "$BODY" --key-id $KEY_ID --secret $SECRET --partner-id $PARTNER_ID',
}


def _signer(security: list[dict[str, Any]]) -> str | None:
    """The command that signs with a body, where the operation takes such a signature."""
    names = {name for choice in security for name in choice}
    if "posSignature" in names:
        return _POS
    return _PARTNER if "partnerSignature" in names else None


def _credential(method: str, path: str, operation: dict[str, Any]) -> list[str]:
    """For requests whose body is not signed: the first kind that is taken."""
    names = {name for choice in operation["security"] for name in choice}
    if "apiKey" in names:
        return ['-H "Authorization: Bearer $KEY"']
    if "adminToken" in names:
        return ['-H "Authorization: Bearer $TOKEN"']
    if "serviceSignature" in names:
        return [f"$(tapgate sign service {method} {path})"]
    signer = _signer(operation["security"])
    if signer:
        options = _SIGNED[signer].removeprefix('-d "$BODY" ')
        return [f"$({signer} {method} {path} {options})"]
    return []


def _file(content: dict[str, Any]) -> list[str]:
    if not content:
        return []
    if _FORM in content:
        return ["-F file=@FILE"]
    return [f"-H 'Content-Type: {next(iter(content))}'", "--data-binary @FILE"]


def _shown(body: Any) -> str:
    line = json.dumps(body, ensure_ascii=False)
    return line if len(line) <= _LONGEST_LINE else json.dumps(body, ensure_ascii=False, indent=4)


def _joined(options: list[str]) -> str:
    return " \\\n    ".join(options)
