"""hermes-nb: a notebook-native agent harness."""

__version__ = "0.1.0"
