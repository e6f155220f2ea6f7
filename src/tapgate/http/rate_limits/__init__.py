"""Rate limits: token buckets per node or in the shared cache, and leases of busy buckets."""
