"""Runtime shared by the gateway and the messenger: HTTP server, limits, logs, background work."""
