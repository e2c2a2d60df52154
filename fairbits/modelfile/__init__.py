"""Model files without pickle: a folder of weights (safetensors) and JSON that is checked before it is believed."""

from fairbits.modelfile.error import ModelFileError
from fairbits.modelfile.save_and_load import load, save

__all__ = ["ModelFileError", "load", "save"]
