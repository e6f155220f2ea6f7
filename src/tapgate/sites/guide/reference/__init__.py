"""API reference: operations with fields and code examples, from the OpenAPI document."""
