"""One SQLite file that processes share, and the files beside it (memory, skills). Knows no agent, no front end."""
