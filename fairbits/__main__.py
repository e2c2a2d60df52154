"""`python -m fairbits`: the command line."""

import sys

from fairbits.commands import main

if __name__ == "__main__":
    sys.exit(main())
