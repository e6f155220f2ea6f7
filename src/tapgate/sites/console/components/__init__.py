"""Components shared by the pages: lists, related records, form fields and actions."""
