"""HTTP API layer: endpoint declarations, routing, decoding, access checks and OpenAPI."""
