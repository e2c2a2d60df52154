"""A model as an HTTP service: rows come as JSON or Arrow, requests are answered in batches, and all is bounded."""

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from fairbits.errors import InputError
from fairbits.workflow.model_service import Counts, ModelService, batch_of
from fairbits.workflow.option_words import worded

ARROW = "application/vnd.apache.arrow.stream"
WAIT_SECONDS = 0.002  # for more requests of a batch


@dataclass(frozen=True)
class Bounds:
    """What one request may take."""

    body_bytes: int = 10_000_000
    rows: int = 10_000
    seconds: float = 30.0
    waiting: int = 1_000  # requests


class RefusedError(Exception):
    """A request that is not answered: a status and a sentence."""

    def __init__(self, status: int, sentence: str):
        self.status, self.sentence = status, sentence
        super().__init__(sentence)


class Batches:
    """Requests that wait are computed together; a bad one spoils no other."""

    def __init__(self, service: ModelService, counts: Counts, bounds: Bounds):
        self._service, self._counts, self._bounds = service, counts, bounds
        self._queue: asyncio.Queue[tuple[pd.DataFrame, asyncio.Future]] = asyncio.Queue(bounds.waiting)

    async def answer(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Wait for the answer to some rows."""
        future = asyncio.get_running_loop().create_future()
        try:
            self._queue.put_nowait((frame, future))
        except asyncio.QueueFull:
            raise RefusedError(503, "Too many requests are waiting. Try again later.") from None
        try:
            return await asyncio.wait_for(future, self._bounds.seconds)
        except TimeoutError:
            raise RefusedError(503, f"No answer within {self._bounds.seconds:g} seconds. Send fewer rows.") from None

    async def run(self) -> None:
        """Answer batch after batch."""
        while True:
            batch = [await self._queue.get()]
            await asyncio.sleep(WAIT_SECONDS)
            columns = set(batch[0][0].columns)
            rows = len(batch[0][0])
            later: list[tuple[pd.DataFrame, asyncio.Future]] = []
            while not self._queue.empty() and rows < self._bounds.rows:
                frame, future = self._queue.get_nowait()
                (batch if set(frame.columns) == columns else later).append((frame, future))
                rows += len(frame)
            for group in [batch, *([one] for one in later)]:
                await self._compute(group)

    async def _compute(self, batch: list[tuple[pd.DataFrame, asyncio.Future]]) -> None:
        batch = [(frame, future) for frame, future in batch if not future.done()]  # nobody waits for the others
        if not batch:
            return
        try:
            found = await run_in_threadpool(self._service.answer, batch_of([frame for frame, _ in batch]))
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    await self._compute([one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        self._counts.batches += 1
        self._counts.rows += len(found)
        first = 0
        for frame, future in batch:
            if not future.done():
                future.set_result(found.iloc[first : first + len(frame)])
            first += len(frame)


def http_service(service: ModelService, bounds: Bounds | None = None) -> Starlette:
    """Return the application of a service."""
    bounds, counts = bounds or Bounds(), Counts()
    batches = Batches(service, counts, bounds)

    async def codes(request: Request) -> Response:
        started = time.perf_counter()
        try:
            response = await _answered(request, batches, service, bounds)
        except RefusedError as error:
            response = JSONResponse({"error": error.sentence}, error.status)
        except InputError as error:
            response = JSONResponse({"error": worded(error)}, 422)
        except ClientDisconnect:
            response = Response(status_code=499)
        counts.add(response.status_code, time.perf_counter() - started)
        return response

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "model": service.model.method.fingerprint})

    async def certificate(_: Request) -> Response:
        return JSONResponse(json.loads(json.dumps(service.certificate(), default=str)))

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(counts.text(service.monitor), media_type="text/plain; version=0.0.4")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(batches.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        service.finish()

    async def unexpected(_: Request, error: Exception) -> Response:
        counts.add(500, 0.0)
        return JSONResponse({"error": "The service failed: this is a bug in fairbits."}, 500)

    routes = [Route("/codes", codes, methods=["POST"]), Route("/health", health), Route("/certificate", certificate)]
    handlers: dict[Any, Any] = {Exception: unexpected}
    return Starlette(routes=[*routes, Route("/metrics", metrics)], lifespan=lifespan, exception_handlers=handlers)


async def _answered(request: Request, batches: Batches, service: ModelService, bounds: Bounds) -> Response:
    try:
        body = await asyncio.wait_for(_body(request, bounds.body_bytes), bounds.seconds)
    except TimeoutError:
        raise RefusedError(408, f"The rows did not arrive within {bounds.seconds:g} seconds.") from None
    arrow = request.headers.get("content-type", "").partition(";")[0].strip() == ARROW
    frame = _from_arrow(body) if arrow else _from_json(body)
    if not len(frame):
        raise RefusedError(422, "There are no rows.")
    if len(frame) > bounds.rows:
        raise RefusedError(413, f"There are {len(frame):,} rows; send at most {bounds.rows:,} at a time.")
    found = await batches.answer(frame)
    if ARROW in request.headers.get("accept", ""):
        return Response(_to_arrow(found), media_type=ARROW)
    return JSONResponse(service.to_answer(found))


async def _body(request: Request, most: int) -> bytes:
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > most:
            raise RefusedError(413, f"The body has more than {most:,} bytes. Send fewer rows at a time.")
    return bytes(found)


def _from_json(body: bytes) -> pd.DataFrame:
    """Read {"rows": [{"column": value, ...}, ...]}."""
    try:
        content = json.loads(body)
    except (ValueError, UnicodeDecodeError, RecursionError):
        raise RefusedError(400, "The body is not JSON.") from None
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RefusedError(422, 'The body must be {"rows": [{"column": value, ...}, ...]}.')
    for number, row in enumerate(rows, 1):
        if row.keys() != rows[0].keys():
            name = min(row.keys() ^ rows[0].keys())
            has, lacks = (number, 1) if name in row else (1, number)
            raise RefusedError(422, f"Row {has} has a column {name!r}, and row {lacks} has none.")
        for name, value in row.items():
            if isinstance(value, (list, dict)):
                raise RefusedError(422, f"Column {name!r} of row {number} holds a list or record, not a single value.")
    return pd.DataFrame(rows)


def _from_arrow(body: bytes) -> pd.DataFrame:
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(body).read_all().to_pandas(ignore_metadata=True)
    except (pa.ArrowException, ValueError, OSError):
        raise RefusedError(400, "The body is not a stream of Arrow record batches.") from None


def _to_arrow(found: pd.DataFrame) -> bytes:
    import pyarrow as pa

    table, buffer = pa.Table.from_pandas(found, preserve_index=False), io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue()
