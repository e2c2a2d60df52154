"""How much a random code of bits reveals about a group: pure functions on torch tensors, in bits."""

import lazy_loader

# Loaded when first used: what is counted in tables needs no torch.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
