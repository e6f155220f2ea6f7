"""Console actions: API operations with a form that explains and confirms them."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.http.endpoint import Reply
from tapgate.sites.console import pickers, stale_check, step_up
from tapgate.sites.console.form_errors import describe_error, describe_field_error
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.forms import FormData
from tapgate.sites.console.page_request import CONSOLE, PageRequest, build_path
from tapgate.sites.console.rendering import end_sentence
from tapgate.sites.console.site import Pages
from tapgate.sites.console.translation.translator import Translator
from tapgate.sites.console.typed_input import clean_phone_number
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code

_DONE: Final = "Done."
_DETERMINERS: Final = frozenset({"a", "an", "this"})


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """State-changing form for one API operation.

    `button` is by default the title as an imperative: "Close this account?" -> "Close account".
    `endpoint` identifies the operation; its path parameters are in the query of the form's URL.
    `required_field` is a field that the action needs and that not every role may send.
    `prefill_path` is the resource that provides the current values. The form submits all of them,
    so the action is rejected if any of them has changed since the form was rendered.
    `redirect_path` is the page to open on success, by default the previous page. Its parameters
    may also come from the response. `result_template` renders the response instead of a redirect,
    with `result_field` only if the response has this field.
    `message_field` is the response field whose text replaces `success_message`. `sends_body` sends
    a body although there are no fields. `preview_path` is a resource that `preview_template` shows
    in the form, for example what the action affects.
    """

    name: str
    endpoint: str
    title: str
    button: str = ""
    description: str = ""
    fields: tuple[Field, ...] = ()
    success_message: str = _DONE
    is_dangerous: bool = False
    moves_money: bool = False
    required_field: str | None = None
    prefill_path: str | None = None
    redirect_path: str | None = None
    result_template: str | None = None
    result_field: str | None = None
    message_field: str | None = None
    sends_body: bool = False
    preview_path: str | None = None
    preview_template: str | None = None

    def __post_init__(self) -> None:
        if not self.button:
            words = self.title.removesuffix("?").split()
            label = " ".join(word for word in words if word not in _DETERMINERS)
            msgspec.structs.force_setattr(self, "button", label)

    def translate(self, translator: Translator) -> "Action":
        return msgspec.structs.replace(
            self,
            title=translator.translate(self.title),
            button=translator.translate(self.button),
            description=translator.translate(self.description),
            success_message=translator.translate(self.success_message),
            fields=tuple(field.translate(translator) for field in self.fields),
        )

    @property
    def method(self) -> str:
        return self.endpoint.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.endpoint.partition(" ")[2]


_FORM_TEMPLATE: Final = "action.html"
#: Shows the form or its result as a page, for browsers without scripts.
_PAGE_TEMPLATE: Final = "action_page.html"

#: For an action that moves money, only the ledger returns these codes, and only if no transaction
#: was executed under the idempotency key. The decline itself may have consumed the key.
DECLINE_CODES: Final = frozenset(
    {
        Code.INSUFFICIENT_FUNDS,
        Code.INSUFFICIENT_FLOAT,
        Code.SUBSCRIBER_BLOCKED,
        Code.AGENT_NOT_ACTIVE,
        Code.CARD_NOT_ACTIVE,
        Code.CARD_LIMIT_EXCEEDED,
        Code.PROCESSOR_SUSPENDED,
        Code.PARTNER_SUSPENDED,
        Code.COMPLIANCE_REJECTED,
        Code.TRANSACTION_LIMIT_EXCEEDED,
        Code.DAILY_LIMIT_EXCEEDED,
        Code.MONTHLY_LIMIT_EXCEEDED,
        Code.MAX_BALANCE_EXCEEDED,
    }
)


def build_action_pages(actions: Iterable[Action], site: str) -> Pages:
    """Return a site's pages that render and execute the actions."""
    by_name = {action.name: action for action in actions}
    pages = Pages()

    @pages.get(f"{site}/actions/{{name}}")
    async def show_form(request: PageRequest, name: str) -> Reply[bytes]:
        action = await _require_allowed(request, by_name.get(name))
        values = await _load_current_values(request, action)
        initial = {
            field.name: _get_initial_value(field, values, request.query) for field in action.fields
        }
        chosen = await _load_chosen_records(request, action, initial)
        return _render_form(
            request,
            action,
            initial | chosen.titles,
            chosen=chosen.ids,
            request_id=_new_idempotency_key(request, action),
            names=await _load_names(request, action),
            preview=await _load_preview(request, action),
            fingerprint=None
            if action.prefill_path is None
            else stale_check.fingerprint(_get_field_values(action, values)),
        )

    @pages.post(f"{site}/actions/{{name}}")
    async def submit_form(request: PageRequest, name: str) -> Reply[bytes]:
        action = await _require_allowed(request, by_name.get(name))
        path_params, form = _get_path_params(action, request.query), request.form
        body: dict[str, Any] | None = None
        try:
            if action.fields or action.moves_money or action.sends_body:
                body = await _build_body(request, action)
            if action.prefill_path is not None:
                stale_check.require_unchanged(
                    form.get("seen"),
                    _get_field_values(action, await _load_current_values(request, action)),
                )
            response = await request.send(action.method, action.path, body, **path_params)
        except ApiError as error:
            if step_up.is_answered_by_prompt(error):
                raise
            submitted = {field.name: _get_submitted_value(field, form) for field in action.fields}
            return _render_form(
                request,
                action,
                submitted,
                chosen={
                    field.name: form.get(pickers.get_chosen_name(field.name))
                    for field in action.fields
                },
                request_id=_get_next_idempotency_key(request, action, error),
                fingerprint=form.get("seen"),
                error=error,
            )
        return _render_result(request, action, response, path_params)

    return pages


def _render_result(
    request: PageRequest, action: Action, response: Any, path_params: Mapping[str, str]
) -> Reply[bytes]:
    """Return an action's result: its result template, or a redirect with a message."""
    if action.result_template is not None and (
        action.result_field is None or action.result_field in response
    ):
        return _render(
            request,
            action.result_template,
            result=response,
            action=action,
            path_params=path_params,
        )
    path = (
        request.previous_path
        if action.redirect_path is None
        else _build_redirect(request, action, {**_get_string_values(response), **path_params})
    )
    return request.redirect(
        path,
        action.success_message
        if action.message_field is None
        else end_sentence(_describe_result(request, response[action.message_field])),
    )


def _render(request: PageRequest, template: str, **values: Any) -> Reply[bytes]:
    """Render a form or its result for the dialog, or as a page if no script has requested it."""
    page = template if request.is_partial else _PAGE_TEMPLATE
    return request.render(page, part=template, **values)


def _build_redirect(request: PageRequest, action: Action, names: Mapping[str, str]) -> str:
    """Return the path of the page to open. The portal's paths are those of the console."""
    assert action.redirect_path is not None
    return build_path(action.redirect_path.replace(CONSOLE, request.site, 1), names)


def _describe_result(request: PageRequest, message: str) -> str:
    """Return the API's message about a result, or a general one if it has no translation."""
    return request.translator.translate_message(message) or request.translate(_DONE)


async def _load_current_values(request: PageRequest, action: Action) -> dict[str, Any]:
    """Return the current values of the resource that an action changes."""
    if action.prefill_path is None:
        return {}
    values: dict[str, Any] = await request.get(
        action.prefill_path, **_get_path_params(action, request.query)
    )
    return values


def _get_field_values(action: Action, values: Mapping[str, Any]) -> list[Any]:
    return [_get_current_value(field, values) for field in action.fields]


def _get_current_value(field: Field, values: Mapping[str, Any]) -> Any:
    outer, _, inner = (field.record_field or field.name).partition(".")
    value = values.get(outer)
    return value.get(inner) if inner and value is not None else value


def _new_idempotency_key(request: PageRequest, action: Action) -> str | None:
    return f"console-{request.context.services.new_id():x}" if action.moves_money else None


def _get_next_idempotency_key(request: PageRequest, action: Action, error: ApiError) -> str | None:
    """Return the idempotency key for the next submission after an error.

    A decline is final, so a corrected form is a new request with a new key. After any other error,
    an earlier submission may have been executed, so the key is kept to prevent a second execution.
    """
    declined = error.code in DECLINE_CODES
    return _new_idempotency_key(request, action) if declined else request.form.get("request_id")


async def _require_allowed(request: PageRequest, action: Action | None) -> Action:
    if action is None:
        raise ApiError(Code.NOT_FOUND)
    await request.require_access(action.endpoint, action.required_field)
    fields = tuple(
        field for field in action.fields if request.can_access(action.endpoint, field.name)
    )
    return msgspec.structs.replace(action, fields=fields).translate(request.translator)


def _get_path_params(action: Action, query: FormData) -> dict[str, str]:
    """Return an action's path parameters from the query."""
    paths = (action.path, action.prefill_path, action.preview_path, action.redirect_path)
    templates = "".join(path or "" for path in paths)
    return query.pick(*(part.partition("}")[0] for part in templates.split("{")[1:]))


def _get_string_values(response: Any) -> dict[str, str]:
    """Return a response's string fields, such as a created resource's ID."""
    if not isinstance(response, dict):
        return {}
    return {name: value for name, value in response.items() if isinstance(value, str)}


def _get_initial_value(field: Field, values: Mapping[str, Any], query: FormData) -> Any:
    value_in_query = query.get(field.name)
    if value_in_query is not None:
        return value_in_query
    value = _get_current_value(field, values)
    return field.value if value is None else value


def _get_submitted_value(field: Field, form: FormData) -> Any:
    """Return the value to redisplay in a rejected form; None for secrets and pictures."""
    if field.kind in ("secret", "pin", "picture"):
        return None
    if field.kind == "many":
        return form.get_all(field.name)
    return field.name in form if field.kind == "check" else form.get(field.name)


class _ChosenRecords(NamedTuple):
    """Records that pickers show initially, by field name."""

    ids: dict[str, str | None]
    titles: dict[str, str]


async def _load_chosen_records(
    request: PageRequest, action: Action, values: Mapping[str, Any]
) -> _ChosenRecords:
    chosen = _ChosenRecords({}, {})
    for field in action.fields:
        if field.kind == "picker" and (value := values[field.name]):
            chosen.ids[field.name] = value
            record = await pickers.load_record(request, value, field.picks)
            chosen.titles[field.name] = record["title"]
    return chosen


async def _load_names(request: PageRequest, action: Action) -> dict[str, str]:
    """Return the names, by ID, for records that a dangerous action changes."""
    if not action.is_dangerous:
        return {}
    public_ids = filter(ids.is_id, _get_path_params(action, request.query).values())
    records = [await pickers.load_record(request, public_id) for public_id in public_ids]
    return {record["id"]: record["title"] for record in records if record["title"] != record["id"]}


async def _load_preview(request: PageRequest, action: Action) -> dict[str, Any] | None:
    if action.preview_path is None:
        return None
    preview: dict[str, Any] = await request.get(
        action.preview_path, **_get_path_params(action, request.query)
    )
    return preview


async def _build_body(request: PageRequest, action: Action) -> dict[str, Any]:
    form, body, problems = request.form, dict[str, Any](), dict[str, str]()
    for field in action.fields:
        is_constant = field.kind == "hidden" and isinstance(field.value, bool)
        value = field.value if is_constant else _parse_field(request, field)
        if field.kind == "picker" and value is not None:
            chosen = form.get(pickers.get_chosen_name(field.name))
            value, problem = await pickers.resolve(request, value, chosen, field.picks)
            if problem is not None:
                problems[field.name] = problem
        if value is None and field.resets:
            value = ""
        if value is not None:
            # `details.note` is the field `note` of the object `details`.
            outer, _, inner = field.name.partition(".")
            body[outer] = {**body.get(outer, {}), inner: value} if inner else value
    if problems:
        raise ApiError(
            Code.VALIDATION_FAILED, next(iter(problems.values())), details={"fields": problems}
        )
    if action.moves_money:
        body["request_id"] = form.get("request_id")
    return body


def _parse_field(request: PageRequest, field: Field) -> Any:
    """Return a field's value for the JSON body.

    In a number field, text that is not a number is kept, so that the API's validation rejects it.
    """
    form, country = request.form, request.context.services.settings.country
    text = form.get(field.name)
    if field.kind == "tel":
        text = clean_phone_number(text, country)
    elif field.kind in ("money", "number"):
        text = request.translator.numbers.clean(text)
    elif field.kind == "moment":
        text = text and _to_utc(text)
    match field.kind:
        case "many" | "lines":
            lines = "\n".join(form.get_all(field.name)).splitlines()
            return [line.strip() for line in lines if line.strip()]
        case "check":
            return text is not None
        case "number" | "whole_choice" | "duration":
            return _parse_number(text)
        case "secret":
            return form.get_raw(field.name) or None
        case "credential":
            return step_up.parse_credential(text)
    return text and text.replace("\r\n", "\n")  # browsers submit line breaks as CRLF


def _to_utc(text: str) -> str:
    """Return the value of a `datetime-local` input, which may lack seconds, as a time in UTC."""
    return text if text.endswith("Z") else f"{text}:00Z" if len(text) == 16 else f"{text}Z"


def _parse_number(text: str | None) -> int | float | str | None:
    if text is None:
        return None
    try:
        if text.lstrip("-").isdigit():
            return int(text)
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _render_form(
    request: PageRequest,
    action: Action,
    values: Mapping[str, Any],
    *,
    request_id: str | None,
    fingerprint: str | None,
    chosen: Mapping[str, str | None],
    names: Mapping[str, str] | None = None,
    preview: Mapping[str, Any] | None = None,
    error: ApiError | None = None,
) -> Reply[bytes]:
    invalid = (error.details or {}).get("fields", {}) if error is not None else {}
    visible = {field.name: field for field in action.fields if field.kind != "hidden"}
    # The error repeats the message of one field, or the messages of all fields.
    texts = [f"{name} {message}" for name, message in invalid.items()]
    messages = {*invalid.values(), *texts, "; ".join(texts)} if texts else set()
    is_marked = error is not None and error.message in messages and invalid.keys() <= visible.keys()
    return _render(
        request,
        _FORM_TEMPLATE,
        is_marked=is_marked,
        action=action,
        values=values,
        chosen=chosen,
        request_id=request_id,
        fingerprint=fingerprint,
        error=error,
        error_text=error and describe_error(error, action.fields, request.translator),
        field_errors={
            name: describe_field_error(visible[name], message, request.translator)
            for name, message in invalid.items()
            if name in visible
        },
        path_params=_get_path_params(action, request.query),
        names=names or {},
        preview=preview,
        address=f"{request.context.path}?{request.context.query.decode('ascii', 'ignore')}",
    )
