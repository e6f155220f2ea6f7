"""API operations, grouped by resource."""
