"""The commands of ``hermes-nb``, one file each. Thin: they read arguments, call, and print."""
