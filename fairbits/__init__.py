"""fairbits: rows become a few random bits that forget the sensitive attribute, and say how much they still tell."""

__version__ = "0.1.0"
