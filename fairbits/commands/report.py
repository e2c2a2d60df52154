"""`fairbits report`: the page of a folder, from its records."""

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairbits.commands.terminal import AsJson
from fairbits.storage import file_errors


def report(
    folder: Annotated[Path, Argument(help="Folder that `fairbits fit` or `fairbits reproduce` wrote.")],
    output: Annotated[Path | None, Option("--output", "-o", help="Folder to write to.", show_default="FOLDER")] = None,
    as_json: AsJson = False,
) -> None:
    """Write report.html again from the records in a folder."""
    from fairbits.report.page import write_report

    with file_errors(output or folder):
        if (folder / "records.jsonl").exists() and not (folder / "audit.json").exists():
            from fairbits.lab.paper import write_lab_report

            written = write_lab_report(folder, output)
        else:
            written = [write_report(folder, output)]
    print(json.dumps({"output": str(written[-1])}) if as_json else f"Written: {', '.join(map(str, written))}")
