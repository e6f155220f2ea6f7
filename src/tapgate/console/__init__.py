"""The pages for people who run the platform: the interface's operations, rendered."""
