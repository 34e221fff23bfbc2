"""Values every layer may use: names, errors, types, paths, configuration. Standard library only."""
