"""Everything rendered as HTML: admin console, guide, tap page."""
