"""Form that edits all rows of a table in one dialog and sends them as the list `data`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console import stale_check, step_up
from tapgate.sites.console.actions import Action
from tapgate.sites.console.page_request import PageRequest
from tapgate_client.errors import ApiError

#: Row of the form, named as in its fields (`rate_{key}`) -> row of the request.
SubmittedRows = Mapping[str, Mapping[str, Any]]


class TableForm(NamedTuple):
    """Table form. `template` extends `dialog.html` and shows the rows of the context."""

    action: Action
    template: str
    redirect_path: str

    def render(
        self,
        request: PageRequest,
        context: Mapping[str, Any],
        fingerprint: str | None,
        *,
        rows: SubmittedRows | None = None,
        error: ApiError | None = None,
    ) -> Reply[bytes]:
        """Render the form with the API's errors, which refer to submitted rows, at its fields."""
        field_errors = _map_field_errors(list(rows or ()), error)
        return request.render(
            self.template,
            **{"action": self.action.translate(request.translator)} | dict(context),
            address=request.context.path,
            error=error,
            is_marked=bool(field_errors),
            field_errors=field_errors,
            fingerprint=fingerprint,
        )

    def show(
        self, request: PageRequest, current: list[Any], context: Mapping[str, Any]
    ) -> Reply[bytes]:
        return self.render(request, context, stale_check.fingerprint(current))

    async def submit(
        self,
        request: PageRequest,
        current: list[Any],
        rows: SubmittedRows,
        context: Mapping[str, Any],
        **path_params: str,
    ) -> Reply[bytes]:
        """Send the rows unless the table has changed. Show the form again if they are rejected."""
        fingerprint, action = request.form.get("seen"), self.action
        try:
            stale_check.require_unchanged(fingerprint, current)
            await request.send(
                action.method, action.path, {"data": list(rows.values())}, **path_params
            )
        except ApiError as error:
            if step_up.is_answered_by_prompt(error):
                raise
            return self.render(request, context, fingerprint, rows=rows, error=error)
        return request.redirect(self.redirect_path, action.success_message)


def _map_field_errors(keys: list[str], error: ApiError | None) -> dict[str, str]:
    fields = {} if error is None else (error.details or {}).get("fields", {})
    field_errors = {}
    for path, message in fields.items():
        index, _, name = path.removeprefix("data[").partition("].")
        if index.isdigit() and int(index) < len(keys):
            field_errors[f"{name}_{keys[int(index)]}"] = message
    return field_errors
