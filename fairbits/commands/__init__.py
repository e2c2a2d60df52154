"""The command line: parse, call, print.

One file per command; `app` lists them, and `terminal` and `drawn_codes` serve several.
"""

from fairbits.commands.app import main

__all__ = ["main"]
