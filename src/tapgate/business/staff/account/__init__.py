"""The account of the authenticated admin: second factors, sessions and password."""
