"""curl examples, with the kind of credential that each operation requires."""

import json
import shlex
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

_JSON_MEDIA_TYPE = "application/json"
_MAX_LINE_LENGTH = 72

#: Options for credentials that do not sign the body, in order of preference.
_CREDENTIALS = {
    "apiKey": '-H "Authorization: Bearer $KEY"',
    "adminToken": '-H "Authorization: Bearer $TOKEN"',
    "serviceSignature": "$(tapgate sign service {request})",
}
#: Commands for credentials that sign the body; preferred if there is one.
_SIGN_COMMANDS = {
    "posSignature": "$(tapgate sign pos {request}{body} --key-id $KEY_ID --secret $SECRET)",
    "partnerSignature": "$(tapgate sign partner {request}{body} --key-id $KEY_ID --secret $SECRET"
    " --partner-id $PARTNER_ID)",
}


def render_curl(method: str, path: str, operation: dict[str, Any]) -> str:
    for parameter in operation["parameters"]:
        if parameter.get("in") == "path":
            (example,) = parameter["schema"]["examples"]
            path = path.replace(f"{{{parameter['name']}}}", example)
    query = {
        parameter["name"]: parameter["schema"]["examples"][0]
        for parameter in operation["parameters"]
        if parameter.get("in") == "query" and parameter.get("required")
        if "examples" in parameter["schema"]
    }
    path += f"?{urlencode(query)}" if query else ""
    implied_method = "POST" if "requestBody" in operation else "GET"
    method_option = "" if method == implied_method else f"-X {method} "
    content = operation.get("requestBody", {}).get("content", {})
    body = content.get(_JSON_MEDIA_TYPE, {}).get("example")
    schemes = {name for choice in operation["security"] for name in choice}
    signs_body = body is not None and not schemes.isdisjoint(_SIGN_COMMANDS)
    templates = _SIGN_COMMANDS if signs_body else _CREDENTIALS | _SIGN_COMMANDS
    credentials = [template for scheme, template in templates.items() if scheme in schemes]
    options = [
        f"curl -s {method_option}$TAPGATE{path}",
        *(
            template.format(request=f"{method} {path}", body=' -d "$BODY"' if signs_body else "")
            for template in credentials[:1]
        ),
        *_list_body_options(content, body, signs_body=signs_body),
    ]
    variable = f"BODY={_quote_json(body)}\n" if signs_body else ""
    return variable + " \\\n    ".join(options)


def _list_body_options(content: dict[str, Any], body: Any, *, signs_body: bool) -> Iterator[str]:
    if body is not None:
        yield '-d "$BODY"' if signs_body else f"-d {_quote_json(body)}"
    elif "multipart/form-data" in content:
        yield "-F file=@FILE"
    elif content:
        yield f"-H 'Content-Type: {next(iter(content))}'"
        yield "--data-binary @FILE"


def _quote_json(body: Any) -> str:
    line = json.dumps(body, ensure_ascii=False)
    if len(line) > _MAX_LINE_LENGTH:
        line = json.dumps(body, ensure_ascii=False, indent=4)
    return shlex.quote(line)
