"""python -m fairfl: the command line where the `fairfl` command is not on the path."""

import sys

from fairfl.cli import main

if __name__ == "__main__":
    sys.exit(main())
