"""TLS contexts of outgoing requests.

Creating one reads all root certificates, which takes longer than a request. It is therefore done
once per process, and only if a URL requires it.
"""

import ssl
from functools import cache

import httpx2


@cache
def get_tls_context(*, trust_env: bool = False) -> ssl.SSLContext:
    """Return the shared context, which trusts the common certificate authorities.

    With `trust_env`, the variables SSL_CERT_FILE and SSL_CERT_DIR select others.
    """
    return httpx2.create_ssl_context(trust_env=trust_env)


def get_tls_context_for(url: str, *, trust_env: bool = False) -> ssl.SSLContext:
    """Return the shared context for a URL with `https`, else one that trusts no certificate."""
    if url.lower().startswith("https:"):
        return get_tls_context(trust_env=trust_env)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
