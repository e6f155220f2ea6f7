"""Web layer of both services: HTTP server, endpoints, request pipeline, limits and OpenAPI."""
