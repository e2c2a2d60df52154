"""Save and load models without pickle: a folder of weights (safetensors) and JSON, checked before it is used."""

from fairbits.modelfile.manifest import ModelFileError
from fairbits.modelfile.save_and_load import ModelExistsError, load, save
from fairbits.modelfile.sealed_record import BrokenSealError

__all__ = ["BrokenSealError", "ModelExistsError", "ModelFileError", "load", "save"]
