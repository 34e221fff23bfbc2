"""The offline demo model: SmolLM2-135M in a child process behind the Provider protocol. Never a real default."""
