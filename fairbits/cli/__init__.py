"""The command line: parse, call, print."""

from fairbits.cli.main import main

__all__ = ["main"]
