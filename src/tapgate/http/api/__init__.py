"""The gateway's HTTP face on the shared web layer: access, sites, system endpoints, OpenAPI."""
