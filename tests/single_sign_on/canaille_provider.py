"""Starts Canaille, an identity provider, with one person and one client, and prints its issuer.

Runs with the Python in the folder into which `make generators` installs Canaille.
"""

import os
import tempfile
from pathlib import Path

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

environ = os.environ
server = make_server("127.0.0.1", 0, lambda *_: [], threaded=True)
address = f"127.0.0.1:{server.server_port}"
configuration = {
    "SECRET_KEY": "not secret",
    "SERVER_NAME": address,
    "PREFERRED_URL_SCHEME": "http",
    "WTF_CSRF_ENABLED": False,
    "SESSION_COOKIE_SECURE": False,
    "CANAILLE": {"DATABASE": "memory", "SMTP": None, "SMPP": None},
    "CANAILLE_OIDC": {
        "ACTIVE_JWKS": [RSAKey.generate_key(2048, parameters={"kid": "1"}).as_dict(private=True)],
    },
}
os.chdir(tempfile.mkdtemp())
Path(".env").touch()
app = create_app(configuration)
with app.app_context():
    person = models.User(
        user_name="grace",
        formatted_name="Grace Hopper",
        family_name="Hopper",
        emails=["grace@example.com"],
        password=environ["PASSWORD"],
    )
    Backend.instance.save(person)
    Backend.instance.save(models.Group(display_name=environ["GROUP"], members=[person]))
    client = models.Client(
        client_id=environ["CLIENT_ID"],
        client_secret=environ["CLIENT_SECRET"],
        client_name="Tapgate",
        client_uri="http://127.0.0.1:8000",
        contacts=[],
        redirect_uris=[environ["REDIRECT_URI"]],
        post_logout_redirect_uris=[environ["LOGOUT_URI"]],
        grant_types=["authorization_code"],
        response_types=["code"],
        scope=["openid", "profile", "email", "groups"],
        token_endpoint_auth_method="client_secret_basic",
        id_token_signed_response_alg="RS256",
    )
    Backend.instance.save(client)
    client.audience = [client]  # of its ID tokens
    Backend.instance.save(client)
server.app = app
print(f"http://{address}", flush=True)
server.serve_forever()
