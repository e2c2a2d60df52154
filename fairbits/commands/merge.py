"""`fairbits merge`: what the shards of a command wrote, put together."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairbits.errors import InputError


def merge(
    shards: Annotated[list[Path], Argument(help="Folders of `transform` or `predict`, or files of `certify`.")],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Folder for the parts; not needed for files of `certify`.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Put the shards of a run together: the result is the same, to the byte, as without --shard.

    Exit codes of a certificate: 4, the rows contradict it; 3, the rows were used in the fit and prove nothing.
    """
    if not shards[0].is_dir():
        from fairbits.commands.certify import tell
        from fairbits.workflow.sum_files import merged_sums

        tell(merged_sums(shards), as_json)
        return
    if output is None:
        raise InputError("Name the folder for the parts with -o.")
    from fairbits.workflow.part_files import merge_folders

    print(f"{merge_folders(output, shards):,} parts are in {output}.")
