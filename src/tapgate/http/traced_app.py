"""Application that runs each request in a span; used only while traces are exported."""

from tapgate.core import telemetry
from tapgate.http.http_messages import Application, Request, Response

_PROPAGATED_HEADERS = ("traceparent", "tracestate")


class TracedApp:
    def __init__(self, app: Application) -> None:
        self._app = app

    async def respond(self, request: Request) -> Response:
        carrier = {
            name: value.decode("latin-1")
            for name in _PROPAGATED_HEADERS
            if (value := request.headers.get(name.encode())) is not None
        }
        with telemetry.start_root_span(
            request.method, "SERVER", {"http.request.method": request.method}, carrier=carrier
        ):
            return await self._app.respond(request)
