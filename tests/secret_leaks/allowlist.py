"""Responses, files and environments in which a secret may appear, each with a reason.

A secret anywhere else is a leak. A test checks that the allowed responses are exactly those that
return a secret.
"""

from typing import Final

#: Responses that may show a secret once, by endpoint name and field.
ALLOWED_IN_RESPONSES: Final = {
    ("POST /api/v1/admin/login", "token"): "returned by a login",
    ("POST /api/v1/admin/login", "refresh_token"): "returned by a login",
    ("POST /api/v1/admin/login/oidc", "token"): "returned by a login",
    ("POST /api/v1/admin/login/oidc", "refresh_token"): "returned by a login",
    ("POST /api/v1/admin/login/oidc/start", "login_token"): "completes the login",
    ("POST /api/v1/admin/me/step-up/oidc/start", "login_token"): "completes the verification",
    ("POST /api/v1/admin/login/passkey", "token"): "returned by a login",
    ("POST /api/v1/admin/login/passkey", "refresh_token"): "returned by a login",
    ("POST /api/v1/admin/refresh", "token"): "returned by a refresh",
    ("POST /api/v1/admin/refresh", "refresh_token"): "replaces the previous refresh token",
    ("POST /api/v1/admin/api-keys", "key"): "shown once",
    ("POST /api/v1/admin/api-keys/{id}/rotate", "key"): "shown once",
    ("POST /api/v1/admin/me/totp", "secret"): "entered into an authenticator app",
    ("POST /api/v1/admin/webhook-endpoints", "secret"): "shown once",
    ("POST /api/v1/admin/webhook-endpoints/{id}/rotate-secret", "secret"): "shown once",
    ("POST /api/v1/admin/partners", "hmac_secret"): "shown once",
    ("POST /api/v1/admin/partners", "webhook_secret"): "shown once",
    ("POST /api/v1/admin/partners/{id}/keys", "hmac_secret"): "shown once",
    ("POST /api/v1/admin/partners/{id}/rotate-webhook-secret", "webhook_secret"): "shown once",
    ("POST /api/v1/processors", "hmac_secret"): "shown once",
    ("POST /api/v1/processors/{id}/terminals", "hmac_secret"): "shown once",
    ("POST /api/v1/processors/{id}/keys", "hmac_secret"): "shown once",
    **{
        ("POST /api/v1/cards/{serial}/personalize", f"k{number}"): "written to the chip"
        for number in range(5)
    },
    **{
        (
            f"GET /api/v1/admin/request-logs{path}",
            "idempotency_key",
        ): "names a request"
        for path in ("", "/{id}")
    },
    ("GET /.well-known/tapgate-keys", "public_key"): "public",
    ("POST /api/v1/wallet/account-statement", "statement_url"): "link to one file, valid for a day",
    ("POST /api/v1/statements", "statement_url"): "link to one file, valid for a day",
}

#: Files in the data directory that may contain any installation secret. Only the owner may
#: read them.
ALLOWED_IN_FILES: Final = {
    "secrets.json": "secrets generated because none were configured",
    "forms.pem": "generated for the forms of the phone simulator",
    "administrator.txt": "generated for the first admin, in development",
}

_COMMON_VARIABLES: Final = {
    "TAPGATE_DATABASE_URL": "both services use the database",
    "TAPGATE_SECRET_KEY": "both services seal and hash with it",
    "TAPGATE_SERVICE_SECRETS": "the services sign requests to each other",
    "TAPGATE_MESSENGER_VERIFY_TOKEN": "required setting in production",
    "TAPGATE_JWT_SECRET": "required setting in production",
    "TAPGATE_METRICS_TOKEN": "both services require it for their metrics",
}
#: Secrets that a process may have in its environment, by module name.
ALLOWED_IN_ENVIRONMENTS: Final = {
    "tapgate.server.gateway": _COMMON_VARIABLES,
    "tapgate_sandbox.gateway": _COMMON_VARIABLES,
    "tapgate.messenger": _COMMON_VARIABLES
    | {
        "TAPGATE_MESSENGER_ACCESS_TOKEN": "authenticates requests to the provider",
        "TAPGATE_MESSENGER_APP_SECRET": "verifies deliveries from the provider",
        "TAPGATE_MESSENGER_BRIDGE_TOKEN": "authenticates bridges",
        "TAPGATE_MESSENGER_FLOW_PRIVATE_KEY": "decrypts forms",
    },
}
