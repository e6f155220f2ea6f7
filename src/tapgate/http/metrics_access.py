"""Access to a service's metrics."""

import hmac

from tapgate.core.settings import Settings
from tapgate_client.errors import ApiError, Code


def require_metrics_access(settings: Settings, authorization: str | None) -> None:
    """Require the metrics token, if one is set.

    Without a token, metrics are public in development and testing, and do not exist in staging and
    production: a stranger must not learn how much an operator processes.
    """
    token = settings.metrics_token
    if token is None:
        if settings.requires_secrets:
            raise ApiError(Code.NOT_FOUND)
        return
    scheme, _, value = (authorization or "").partition(" ")
    is_genuine = hmac.compare_digest(value.strip().encode(errors="replace"), token.encode())
    if scheme.lower() != "bearer" or not is_genuine:
        raise ApiError(
            Code.UNAUTHORIZED,
            "Authorization must be Bearer followed by the metrics token.",
            headers={"WWW-Authenticate": "Bearer"},
        )
