"""Admin single sign-on: accounts, roles and sessions."""
