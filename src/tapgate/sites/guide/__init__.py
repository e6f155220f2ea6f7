"""The guide at `/guide`: the documents of docs/, rendered as pages with navigation and search."""
