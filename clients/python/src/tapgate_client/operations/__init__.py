"""API operations, one module per resource."""
