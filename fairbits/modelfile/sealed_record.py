"""audit.json, the record of a fit, and its seal: it has the digest of the model, and the model's manifest has its own.

This notices edits and mix-ups. It is no signature: anyone can compute digests.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairbits.errors import InputError
from fairbits.modelfile.manifest import MANIFEST, VERSION, entry_of, manifest_of, read_manifest, read_sealed, write_json
from fairbits.storage import replace_file

RECORD, INNER = "audit.json", "model"
REMEDY = "Restore the whole folder as `fairbits fit` wrote it, or run `fairbits fit` again."


class BrokenSealError(InputError):
    """A record and the model beside it are not as one fit wrote them."""


def write_record(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Write the record of a fit beside its model, each with the digest of the other; return it as it was written."""
    manifest = read_manifest(folder / INNER)
    sealed = {**record, "model": manifest.digest}
    data = write_json(sealed)
    replace_file(folder / INNER / MANIFEST, manifest_of(manifest.files, record=entry_of(data)))
    replace_file(folder / RECORD, data)
    return sealed


def read_record(folder: Path) -> Any:
    """Return the record of a folder, None if there is none.

    Raise unless it is the one that was written with the model beside it. Versions 0.1 and 0.2 wrote no seal, and the
    record of an audit has no model.
    """
    file, inner = folder / RECORD, folder / INNER
    if not file.exists():
        return None
    data, record, named = file.read_bytes(), None, None
    with suppress(ValueError, RecursionError):
        record = json.loads(data)
        named = record.get("model") if isinstance(record, dict) else None
    if (inner / MANIFEST).exists():
        manifest = read_manifest(inner)
        for name in manifest.files:
            read_sealed(inner / name, manifest.files)
        if named not in (None, manifest.digest):
            raise BrokenSealError(f"{file} is about another model than the one in {inner}.", remedy=REMEDY)
        if (named is not None or manifest.version >= VERSION) and manifest.record != entry_of(data):
            problem = (
                f"{file} is not as `fairbits fit` wrote it with the model in {inner}: changed, cut off or replaced."
            )
            raise BrokenSealError(problem, remedy=REMEDY)
    elif named is not None:
        raise BrokenSealError(f"{file} is about a model, but {inner} holds none.", remedy=REMEDY)
    if record is None:
        raise InputError(f"{file} is damaged: it is not JSON.", remedy=REMEDY)
    return record
