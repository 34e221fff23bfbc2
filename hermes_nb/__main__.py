"""``python -m hermes_nb`` is ``hermes-nb``."""

from hermes_nb.cli import main

if __name__ == "__main__":
    main()
