"""Admin work queues: items that wait for a decision or need attention."""
