"""Rate limits: token buckets per node or in the shared cache, and leases on busy buckets."""
