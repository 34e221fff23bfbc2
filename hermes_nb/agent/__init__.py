"""The agent: loop, provider, execution. Knows no front end; receives what it needs as values."""
