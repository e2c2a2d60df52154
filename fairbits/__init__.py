"""fairbits: turn each row into a few bits that predict the label and hide the sensitive columns, and prove it."""

from importlib.metadata import version

import lazy_loader

__version__ = version("fairbits")
# Loaded when first used: torch and scikit-learn take seconds to import, and `fairbits --help` needs neither.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
