"""A model as an HTTP service: rows come as JSON or Arrow, requests are answered in batches, and all is bounded."""

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from fairbits.errors import InputError
from fairbits.workflow.model_service import Answers, Counts, ModelService, Rows
from fairbits.workflow.option_words import worded

ARROW = "application/vnd.apache.arrow.stream"
WAIT_SECONDS = 0.002  # for more requests of a batch
AT_ONCE = 1_000  # rows computed without a thread, which would take turns of 5 ms with the one that reads requests


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


class Asked(NamedTuple):
    """Rows of a request, and where their answers will be."""

    rows: Rows
    answers: asyncio.Future[Answers]

    @property
    def kind(self) -> tuple[str, frozenset[str]]:
        """What requests have in common that are computed together: JSON or Arrow, and the columns."""
        if isinstance(self.rows, pd.DataFrame):
            return "Arrow", frozenset(self.rows.columns)
        return "JSON", frozenset(self.rows[0])


class Batches:
    """Requests that wait are computed together; a bad one spoils no other."""

    def __init__(self, service: ModelService, counts: Counts, bounds: Bounds):
        self._service, self._counts, self._bounds = service, counts, bounds
        self._queue: asyncio.Queue[Asked] = asyncio.Queue(bounds.waiting)

    async def answer(self, rows: Rows) -> Answers:
        """Wait for the answer to some rows."""
        asked = Asked(rows, asyncio.get_running_loop().create_future())
        try:
            self._queue.put_nowait(asked)
        except asyncio.QueueFull:
            raise RefusedError(503, "Too many requests are waiting. Try again later.") from None
        try:
            async with asyncio.timeout(self._bounds.seconds):
                return await asked.answers
        except TimeoutError:
            raise RefusedError(503, f"No answer within {self._bounds.seconds:g} seconds. Send fewer rows.") from None

    async def run(self) -> None:
        """Answer batch after batch."""
        while True:
            asked = await self._queue.get()
            await asyncio.sleep(WAIT_SECONDS)
            rows, kinds = len(asked.rows), {asked.kind: [asked]}
            while not self._queue.empty() and rows < self._bounds.rows:
                asked = self._queue.get_nowait()
                kinds.setdefault(asked.kind, []).append(asked)
                rows += len(asked.rows)
            for batch in kinds.values():
                await self._compute(batch)

    async def _compute(self, batch: list[Asked]) -> None:
        batch = [asked for asked in batch if not asked.answers.done()]  # nobody waits for the others
        if not batch:
            return
        requests = [asked.rows for asked in batch]
        try:
            if sum(map(len, requests)) <= AT_ONCE:
                found = self._service.answer(requests)
            else:
                found = await run_in_threadpool(self._service.answer, requests)
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    await self._compute([one])
            elif not batch[0].answers.done():
                batch[0].answers.set_exception(error)
            return
        self._counts.batches += 1
        self._counts.rows += len(found.classes)
        first = 0
        for asked in batch:
            last = first + len(asked.rows)
            if not asked.answers.done():
                asked.answers.set_result(found.part(first, last))
            first = last


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
        async with asyncio.timeout(bounds.seconds):
            body = await _body(request, bounds.body_bytes)
    except TimeoutError:
        raise RefusedError(408, f"The rows did not arrive within {bounds.seconds:g} seconds.") from None
    arrow = request.headers.get("content-type", "").partition(";")[0].strip() == ARROW
    rows = _from_arrow(body) if arrow else _from_json(body)
    if not len(rows):
        raise RefusedError(422, "There are no rows.")
    if len(rows) > bounds.rows:
        raise RefusedError(413, f"There are {len(rows):,} rows; send at most {bounds.rows:,} at a time.")
    found = await batches.answer(rows)
    if ARROW in request.headers.get("accept", ""):
        return Response(_to_arrow(service.to_frame(found)), media_type=ARROW)
    return JSONResponse(service.to_dict(found))


async def _body(request: Request, most: int) -> bytes:
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > most:
            raise RefusedError(413, f"The body has more than {most:,} bytes. Send fewer rows at a time.")
    return bytes(found)


def _from_json(body: bytes) -> list[dict[str, Any]]:
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
    return rows


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
