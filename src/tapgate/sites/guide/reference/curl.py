"""curl examples, with the kind of credential that each operation requires."""

import json
import shlex
from collections.abc import Iterator
from typing import Any, Final

from tapgate.sites.guide.reference.operations import Operation
from tapgate.sites.guide.reference.requests import ExampleRequest

_MAX_LINE_LENGTH: Final = 72

#: Options by credential scheme. The last two sign the body.
_CREDENTIALS: Final = {
    "apiKey": '-H "Authorization: Bearer $KEY"',
    "adminToken": '-H "Authorization: Bearer $TOKEN"',
    "serviceSignature": "$(tapgate sign service {request})",
    "posSignature": "$(tapgate sign pos {request}{body} --key-id $KEY_ID --secret $SECRET)",
    "partnerSignature": "$(tapgate sign partner {request}{body} --key-id $KEY_ID --secret $SECRET"
    " --partner-id $PARTNER_ID)",
}
_SIGNING_SCHEMES: Final = ("posSignature", "partnerSignature")


def render_curl(operation: Operation, request: ExampleRequest) -> str:
    implied_method = "POST" if "requestBody" in operation.spec else "GET"
    method_option = "" if request.method == implied_method else f"-X {request.method} "
    scheme, body = operation.scheme, request.body
    signs_body = body is not None and scheme in _SIGNING_SCHEMES
    target = request.target
    options = [f"curl -s {method_option}$TAPGATE{target}"]
    if scheme is not None:
        signed = ' -d "$BODY"' if signs_body else ""
        template = _CREDENTIALS[scheme]
        options.append(template.format(request=f"{request.method} {target}", body=signed))
    options += _list_body_options(operation.body_media, body, signs_body=signs_body)
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
