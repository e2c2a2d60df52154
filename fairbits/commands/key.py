"""`fairbits key`: a secret with which random codes are drawn."""

from pathlib import Path
from typing import Annotated

from typer import Argument


def key(
    file: Annotated[
        Path, Argument(help="File to write, outside the model's folder; only you will be able to read it.")
    ],
) -> None:
    """Make a key for random codes: a person then has the same code on every machine, without a ledger.

    The certificate holds against recipients without the key. Back it up: no other key makes these codes again.
    """
    from fairbits.certificate.keyed_draws import DrawKey
    from fairbits.errors import InputError
    from fairbits.modelfile.manifest import MANIFEST, RECORD

    if any((file.absolute().parent / name).exists() for name in (MANIFEST, RECORD)):
        problem = f"{file.absolute().parent} is the folder of a model, which others may get."
        raise InputError(problem, remedy="Name a place that no recipient of the model can see.")
    DrawKey.make(file)
    print(f"Written to {file}. Pass --key {file} to `fairbits transform` and `fairbits predict`; show it to nobody.")
