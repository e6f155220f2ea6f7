"""curl examples of requests, with the kind of credential that each operation requires."""

import json
import shlex
from typing import Any

_JSON_MEDIA_TYPE = "application/json"
_FORM_MEDIA_TYPE = "multipart/form-data"
_MAX_LINE_LENGTH = 72


def render_curl(method: str, path: str, operation: dict[str, Any]) -> str:
    for parameter in operation["parameters"]:
        if parameter.get("in") == "path":
            (example,) = parameter["schema"]["examples"]
            path = path.replace(f"{{{parameter['name']}}}", example)
    options = [f"curl -s {_render_method(method, operation)}$TAPGATE{path}"]
    content = operation.get("requestBody", {}).get("content", {})
    signer = _get_sign_command(operation["security"])
    if _JSON_MEDIA_TYPE in content and "example" in content[_JSON_MEDIA_TYPE]:
        body = _render_json(content[_JSON_MEDIA_TYPE]["example"])
        if signer:
            options += [f"$({signer} {method} {path} {_SIGN_OPTIONS[signer]})", '-d "$BODY"']
            return f"BODY={shlex.quote(body)}\n{_join_options(options)}"
        return _join_options(
            [*options, *_render_credential(method, path, operation), f"-d {shlex.quote(body)}"]
        )
    return _join_options(
        [*options, *_render_credential(method, path, operation), *_render_file(content)]
    )


def _render_method(method: str, operation: dict[str, Any]) -> str:
    implied = "POST" if "requestBody" in operation else "GET"
    return "" if method == implied else f"-X {method} "


_SIGN_POS, _SIGN_PARTNER = "tapgate sign pos", "tapgate sign partner"
_SIGN_OPTIONS = {
    _SIGN_POS: '-d "$BODY" --key-id $KEY_ID --secret $SECRET',
    _SIGN_PARTNER: '-d "$BODY" --key-id $KEY_ID --secret $SECRET --partner-id $PARTNER_ID',
}


def _get_sign_command(security: list[dict[str, Any]]) -> str | None:
    """Return the command that signs a request body, if the operation accepts such a signature."""
    names = {name for choice in security for name in choice}
    if "posSignature" in names:
        return _SIGN_POS
    return _SIGN_PARTNER if "partnerSignature" in names else None


def _render_credential(method: str, path: str, operation: dict[str, Any]) -> list[str]:
    """Return the options for the first accepted credential, for requests without a signed body."""
    names = {name for choice in operation["security"] for name in choice}
    if "apiKey" in names:
        return ['-H "Authorization: Bearer $KEY"']
    if "adminToken" in names:
        return ['-H "Authorization: Bearer $TOKEN"']
    if "serviceSignature" in names:
        return [f"$(tapgate sign service {method} {path})"]
    signer = _get_sign_command(operation["security"])
    if signer:
        options = _SIGN_OPTIONS[signer].removeprefix('-d "$BODY" ')
        return [f"$({signer} {method} {path} {options})"]
    return []


def _render_file(content: dict[str, Any]) -> list[str]:
    if not content:
        return []
    if _FORM_MEDIA_TYPE in content:
        return ["-F file=@FILE"]
    return [f"-H 'Content-Type: {next(iter(content))}'", "--data-binary @FILE"]


def _render_json(body: Any) -> str:
    line = json.dumps(body, ensure_ascii=False)
    return line if len(line) <= _MAX_LINE_LENGTH else json.dumps(body, ensure_ascii=False, indent=4)


def _join_options(options: list[str]) -> str:
    return " \\\n    ".join(options)
