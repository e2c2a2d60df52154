"""`fairbits bench`: the speed of this machine."""

import json
import warnings

from rich.console import Console
from rich.table import Table

from fairbits.commands.terminal import AsJson, waiting
from fairbits.storage import versions

SIZES = (4_000, 16_000, 64_000)


def bench(as_json: AsJson = False) -> None:
    """Measure how fast this machine fits and draws codes."""
    import torch

    from fairbits.lab.machine_speed import CODE_SIZE, COLUMNS, measure

    torch.set_num_threads(1)  # on a busy machine threads wait for each other
    with waiting("fitting and drawing"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few epochs make no good model
        measure(1_000)  # the first fit of a process is slow
        found = [measure(rows) for rows in SIZES]
    if as_json:
        settings = {"code_size": CODE_SIZE, "columns": COLUMNS, "threads": 1}
        print(json.dumps({**settings, "sizes": found, "versions": versions()}))
        return
    table = Table("rows", "s per epoch", "rows per s, fit", "rows per s, transform", box=None, padding=(0, 3, 0, 0))
    for size in found:
        speeds = (f"{size[f'{what}_rows_per_second']:,.0f}" for what in ("fit", "transform"))
        table.add_row(f"{size['rows']:,}", f"{size['epoch_seconds']:.3f}", *speeds)
    note = f"\n{COLUMNS} columns, {CODE_SIZE} bits, one thread. The time grows in proportion to the rows."
    Console(highlight=False).print(table, note)
