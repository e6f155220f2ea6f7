"""The guide at `/guide`: the documents in docs/, rendered as pages with navigation and search."""
