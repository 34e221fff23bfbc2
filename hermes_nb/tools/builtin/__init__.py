"""Builtin tools, one toolset per file, each independent of the others."""
