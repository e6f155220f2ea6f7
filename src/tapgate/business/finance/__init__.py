"""The books as an accountant sees them."""
