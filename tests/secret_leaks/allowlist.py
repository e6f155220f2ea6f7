"""Places where a secret may appear, each with its reason.

Everything else is a leak. A test checks that every exception here is needed.
"""

from typing import Final

#: Responses that may show a secret once, by endpoint name and field.
ALLOWED_IN_RESPONSES: Final = {
    ("POST /api/v1/admin/login", "token"): "what a login is for",
    ("POST /api/v1/admin/login", "refresh_token"): "what a login is for",
    ("POST /api/v1/admin/refresh", "token"): "what a refresh is for",
    ("POST /api/v1/admin/refresh", "refresh_token"): "the old one is worth nothing any more",
    ("POST /api/v1/admin/api-keys", "key"): "shown once",
    ("POST /api/v1/admin/api-keys/{id}/rotate", "key"): "shown once",
    ("POST /api/v1/admin/webhook-endpoints", "secret"): "shown once",
    ("POST /api/v1/admin/webhook-endpoints/{id}/rotate-secret", "secret"): "shown once",
    ("POST /api/v1/admin/partners", "hmac_secret"): "shown once",
    ("POST /api/v1/admin/partners", "webhook_secret"): "shown once",
    ("POST /api/v1/admin/partners/{id}/keys", "hmac_secret"): "shown once",
    ("POST /api/v1/admin/partners/{id}/rotate-webhook-secret", "webhook_secret"): "shown once",
    ("POST /api/v1/processors", "hmac_secret"): "shown once",
    ("POST /api/v1/processors/{id}/terminals", "hmac_secret"): "shown once",
    ("POST /api/v1/processors/{id}/keys", "hmac_secret"): "shown once",
    ("POST /api/v1/wallet/account-statement", "statement_url"): "the link to one file, for a day",
}

#: Files in the data directory that may contain any secret of the installation. Only the owner may
#: read them.
ALLOWED_IN_FILES: Final = {
    "secrets.json": "what was made because no secret was given",
    "forms.pem": "made for the forms of simulated phones",
    "administrator.txt": "made for the first administrator, in development",
}

_COMMON_VARIABLES: Final = {
    "TAPGATE_DATABASE_URL": "both use the database",
    "TAPGATE_SECRET_KEY": "both seal and hash with it",
    "TAPGATE_SERVICE_SECRETS": "they sign what they ask of each other",
    "TAPGATE_MESSENGER_VERIFY_TOKEN": "settings are not complete in production without it",
    "TAPGATE_JWT_SECRET": "settings are not complete in production without it",
}
#: Secrets that a process may have in its environment, by module name.
ALLOWED_IN_ENVIRONMENTS: Final = {
    "tapgate.gateway": _COMMON_VARIABLES,
    "tapgate.messenger": _COMMON_VARIABLES
    | {
        "TAPGATE_MESSENGER_ACCESS_TOKEN": "it sends to the provider",
        "TAPGATE_MESSENGER_APP_SECRET": "it checks the provider's deliveries",
        "TAPGATE_MESSENGER_BRIDGE_TOKEN": "it checks bridges",
        "TAPGATE_MESSENGER_FLOW_PRIVATE_KEY": "it reads the forms",
    },
}
