"""`fairbits serve`: a model as a small HTTP service."""

import json
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from fairbits.commands.terminal import ModelPath, names
from fairbits.commands.transform import Key, Person
from fairbits.errors import InputError, MissingExtraError
from fairbits.storage import file_errors

GRACE = 10  # seconds that requests have to end after the signal to stop


def serve(
    model: ModelPath,
    host: Annotated[str, Option(help="Address to listen on; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    monitor: Annotated[
        Path | None,
        Option(help="File that watches the limit, as `fairbits watch` does, on rows that come with sensitive columns."),
    ] = None,
    key: Key = None,
    person: Person = None,
    max_bytes: Annotated[int, Option(min=1_000, help="Maximum bytes of a request.")] = 10_000_000,
    max_rows: Annotated[int, Option(min=1, help="Maximum rows of a request.")] = 10_000,
    max_seconds: Annotated[float, Option(min=0.1, help="Maximum seconds for a request.")] = 30.0,
) -> None:
    """Serve codes and classes of rows over HTTP: POST /codes; GET /health, /certificate and /metrics.

    It ends requests that are under way after a signal to stop. It has no encryption or passwords of its own: run it
    behind a proxy that has. For hard codes; for random ones with --key and --person.
    """
    try:
        import uvicorn

        from fairbits.workflow.http_service import Bounds, http_service
    except ImportError:
        raise MissingExtraError("A service", "serve") from None
    import torch

    from fairbits.tables.fitted_model import open_model
    from fairbits.workflow.model_service import ModelService
    from fairbits.workflow.released_columns import CODES, Columns
    from fairbits.workflow.stream_checks import opened_monitor

    torch.set_num_threads(1)
    with file_errors(model):
        opened = open_model(model)
        people = tuple(names(person))
        if (key is None) != (not people):
            raise InputError("--key and --person go together.")
        if key is not None and (opened.is_hard or opened.decides):
            raise InputError("--key is for random codes.", remedy="This model gives a person the same code every time.")
        columns = Columns(CODES, False, people, None if key is None else str(key.absolute()))
        watching: dict[str, Any] = {}
        if monitor is not None:
            watching = {"monitor": opened_monitor(monitor, opened), "state": monitor}
        service = ModelService(opened, columns=columns, **watching)
    app = http_service(service, Bounds(max_bytes, max_rows, max_seconds))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn ends the requests, then sends it again
    print(json.dumps({"serving": str(model), "host": host, "port": port}), flush=True)
    uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=GRACE, timeout_keep_alive=5)
