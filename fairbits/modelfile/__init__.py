"""Save and load models without pickle: a folder of weights (safetensors) and JSON, checked before it is used."""

from fairbits.modelfile.manifest import BrokenSealError, ModelExistsError, ModelFileError
from fairbits.modelfile.save_and_load import load, save

__all__ = ["BrokenSealError", "ModelExistsError", "ModelFileError", "load", "save"]
