"""Schemas of the API: every request and response, shared by the server and the client."""
