"""API schemas: every request and response, shared by the server and the client."""
