"""The authenticated admin's account: second factors, sessions and password."""
