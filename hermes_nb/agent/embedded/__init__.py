"""The offline demo model: a llama.cpp engine in a child process, driven like any other endpoint."""
