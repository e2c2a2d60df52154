"""What a service answers: codes and classes of rows that come by themselves, counts, and a monitor of the limit."""

import threading
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import pandas as pd

from fairbits.certificate import CertificateMonitor
from fairbits.certificate.certification import CodedRows
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel, RowReader
from fairbits.tables.table_frame import TableFrame
from fairbits.workflow.option_words import WORDS
from fairbits.workflow.released_columns import CLASSES, CODES, Columns, class_frame, made_codes
from fairbits.workflow.summed_checks import released_rows

MONITORED = 1_000  # rows of one batch of the monitor
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # seconds, of the histogram


Rows: TypeAlias = list[dict[str, Any]] | pd.DataFrame  # as JSON or Arrow bring them


class Answers(NamedTuple):
    """The bits of each row (n, m), none of a model that decides, and its class (n,)."""

    bits: np.ndarray | None
    classes: np.ndarray

    def part(self, first: int, last: int) -> Self:
        """Return the answers for some of the rows."""
        return self._replace(
            bits=None if self.bits is None else self.bits[first:last], classes=self.classes[first:last]
        )


class ModelService:
    """A model that answers for rows in frames; not more than one thread at a time computes."""

    def __init__(
        self,
        model: FittedModel,
        *,
        columns: Columns | None = None,
        monitor: CertificateMonitor | None = None,
        state: Path | None = None,
    ):
        self.model, self.columns, self.monitor, self.state = model, columns or Columns(CODES), monitor, state
        if not model.decides:
            model.need_code()
        if not model.is_hard and not model.decides and self.columns.key is None:
            remedy = "Pass --key and --person, or serve a model with hard codes."
            raise InputError("A service draws random codes with a key.", remedy=remedy)
        self._pending: list[tuple[CodedRows, pd.DataFrame]] = []
        self._lock = threading.Lock()

    def answer(self, requests: Sequence[Rows]) -> Answers:
        """Answer for the rows of requests, one after another; those with all sensitive columns feed the monitor."""
        frame = frame_of(requests)
        with self._lock:
            table = TableFrame(frame, wrong_dates=0.0)  # an answer must not depend on the requests beside it
            reader = RowReader(self.model, table)
            (piece,) = reader.pieces(verbatim=self.columns.person)
            reader.finish()
            if self.model.decides:
                found = Answers(None, self.model.method.predict(piece.X))
            else:
                codes = made_codes(self.model, piece, self.columns)
                found = Answers(codes, class_frame(self.model, codes)["prediction"].to_numpy())
            if self.monitor is not None and set(self.model.groups.columns_) <= set(frame.columns):
                self._watch(frame)
        return found

    def _watch(self, frame: pd.DataFrame) -> None:
        """Keep the rows of known groups for the next batch of the monitor."""
        reader = RowReader(self.model, TableFrame(frame), groups=True)
        for piece in reader.pieces():
            if len(piece.X) and piece.s is not None:
                self._pending.append((released_rows(self.model, piece.X), piece.s))
        if sum(len(s) for _, s in self._pending) >= MONITORED:
            self._add_batch()

    def _add_batch(self) -> None:
        if self.monitor is None or not self._pending:
            return
        coded = self._pending[0][0]._replace(theta=np.concatenate([part.theta for part, _ in self._pending]))
        s = pd.concat([own for _, own in self._pending], ignore_index=True)
        self._pending = []
        self.monitor.add(coded, sensitive_features=s)
        if self.state is not None:
            self.monitor.save(self.state)

    def finish(self) -> None:
        """Let the monitor have the rows that are left."""
        with self._lock:
            self._add_batch()

    @property
    def words(self) -> str:
        """What the certificate says of the answers."""
        certificate = (self.model.record or {}).get("certificate") or {}
        said = certificate.get("promise")
        refused = (self.model.record or {}).get("certified") is False
        if refused or said is None:
            return WORDS["releases"]["refused"] if refused else "The model has no certified limit."
        keyed = "" if self.columns.key is None else " It holds for recipients without the key."
        return f"Guaranteed at {certificate['confidence']:.0%} confidence: {said}{keyed}"

    def certificate(self) -> dict[str, Any]:
        """Return the certificate, the words for it, and what the monitor knows."""
        record = (self.model.record or {}).get("certificate")
        watched = None if self.monitor is None else self.monitor.to_dict()
        return {"words": self.words, "certificate": record, "monitor": watched, "model": self.model.method.fingerprint}

    def to_dict(self, found: Answers) -> dict[str, Any]:
        """Return answers ready for JSON."""
        codes = {} if found.bits is None else {CODES: found.bits.tolist()}
        return {**codes, CLASSES: found.classes.tolist(), "certificate": self.words}

    def to_frame(self, found: Answers) -> pd.DataFrame:
        """Return answers as columns."""
        bits = {} if found.bits is None else dict(zip(self.columns.names(self.model), found.bits.T, strict=True))
        return pd.DataFrame({**bits, "prediction": found.classes})


class Counts:
    """What a service has done, as text that Prometheus reads."""

    def __init__(self) -> None:
        self.answers: Counter[int] = Counter()
        self.rows = self.batches = 0
        self._seconds, self._within = 0.0, [0] * len(BOUNDS)

    def add(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self.answers[status] += 1
        self._seconds += seconds
        for place, bound in enumerate(BOUNDS):
            self._within[place] += seconds <= bound

    def text(self, monitor: CertificateMonitor | None) -> str:
        """Return the metrics."""
        total = self.answers.total()
        lines = ["# TYPE fairbits_requests_total counter"]
        lines += [f'fairbits_requests_total{{status="{code}"}} {n}' for code, n in sorted(self.answers.items())]
        lines += ["# TYPE fairbits_rows_total counter", f"fairbits_rows_total {self.rows}"]
        lines += ["# TYPE fairbits_batches_total counter", f"fairbits_batches_total {self.batches}"]
        lines += ["# TYPE fairbits_request_seconds histogram"]
        pairs = [*zip(map(str, BOUNDS), self._within, strict=True), ("+Inf", total)]
        lines += [f'fairbits_request_seconds_bucket{{le="{bound}"}} {n}' for bound, n in pairs]
        lines += [f"fairbits_request_seconds_sum {self._seconds:.6f}", f"fairbits_request_seconds_count {total}"]
        if monitor is not None:
            for name in ("at_least", "at_most", "limit"):
                lines += [f"# TYPE fairbits_disparity_{name} gauge"]
                lines += [f"fairbits_disparity_{name} {getattr(monitor, name):.6f}"]
        return "\n".join([*lines, ""])


def frame_of(requests: Sequence[Rows]) -> pd.DataFrame:
    """Return the rows of several requests with the same columns as one frame: all of JSON, or all of Arrow."""
    frames = [rows for rows in requests if isinstance(rows, pd.DataFrame)]
    if not frames:
        return pd.DataFrame(list(chain.from_iterable(requests)))
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
