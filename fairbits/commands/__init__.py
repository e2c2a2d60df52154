"""The command line: parse, call, print."""

from fairbits.commands.app import main

__all__ = ["main"]
