"""Single sign-on for admins with OpenID Connect."""
