"""Valid production settings, for tests of production-specific behavior."""

from typing import Final

SERVICE_SECRETS: Final = {
    "messenger": "mZ4vXq81TgYw0LrKc5uE",
    "gateway": "p9RfWn36HsBd7QjXe2Ut",
}
PRODUCTION_ENVIRON: Final = {
    "TAPGATE_ENVIRONMENT": "production",
    "TAPGATE_PUBLIC_URL": "https://pay.example.com",
    "TAPGATE_JWT_SECRET": "k3V8qZr1XwT6yLmN0pBcD5fGhJ2sQa7u",
    "TAPGATE_SECRET_KEY": "Yt9bW4xKcR7vN2mHs6LpZ1qEjU8dFg3a",
    "TAPGATE_SERVICE_SECRETS": (
        '{"messenger": "mZ4vXq81TgYw0LrKc5uE", "gateway": "p9RfWn36HsBd7QjXe2Ut"}'
    ),
    "TAPGATE_MESSENGER_VERIFY_TOKEN": "verify me",
}
