"""Single sign-on of admins: accounts, roles and sessions."""
