"""Save and load models without pickle: a folder of weights (safetensors) and JSON, checked before it is used."""

from fairbits.modelfile.save_and_load import load, save
from fairbits.modelfile.sealed_folder import ModelExistsError, ModelFileError

__all__ = ["ModelExistsError", "ModelFileError", "load", "save"]
