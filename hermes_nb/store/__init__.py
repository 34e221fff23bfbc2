"""What processes share: one SQLite file with sessions, messages, search, leases, approvals, and the memory files."""
