"""Single sign-on of admins with OpenID Connect."""
