"""``python -m emberlake`` is the command line."""

import sys

from emberlake.cli import main

if __name__ == "__main__":
    sys.exit(main())
