"""Pages of the console: one module per resource, with its pages and actions."""
