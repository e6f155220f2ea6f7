"""Web layer for both services: HTTP server, endpoints, request pipeline, limits and OpenAPI."""
