"""Work queues of admins: what waits for a decision or needs attention."""
