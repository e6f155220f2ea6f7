"""Operations that cannot succeed in the fuzzed installation, each with its reason."""

from typing import Final

_NO_PROVIDER: Final = "The installation has no identity provider."
_NO_TRANSFERS: Final = "The other book has no customers, so no transfer to it exists."
_BOOK_TRANSFER: Final = "/api/v1/books/transfers/{id}"

UNREACHABLE: Final = {
    "POST /api/v1/admin/login/oidc/start": _NO_PROVIDER,
    "POST /api/v1/admin/login/oidc": _NO_PROVIDER,
    "POST /api/v1/admin/me/step-up/oidc/start": _NO_PROVIDER,
    "POST /api/v1/admin/me/step-up/oidc": _NO_PROVIDER,
    f"GET {_BOOK_TRANSFER}": _NO_TRANSFERS,
    f"POST {_BOOK_TRANSFER}/retry": _NO_TRANSFERS,
    f"POST {_BOOK_TRANSFER}/return": _NO_TRANSFERS,
    "POST /api/v1/messages/sms-status (messenger)": "The installation has no SMS provider.",
}
