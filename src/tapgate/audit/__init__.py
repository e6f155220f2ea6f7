"""The audit log: what happened and who did it, in a chain that shows a change."""
