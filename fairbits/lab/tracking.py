"""Mirror records to Weights & Biases; the records stay where they are."""

from collections.abc import Callable
from typing import Any

from fairbits.errors import MissingExtraError

PROJECT = "fairbits"


def wandb_mirror(folder: str) -> Callable[[dict[str, Any]], None]:
    """Return a function that sends each record as one run; `WANDB_MODE=offline` keeps it on this machine."""
    try:
        import wandb
    except ImportError:
        raise MissingExtraError("Weights & Biases", "tracking") from None

    def send(record: dict[str, Any]) -> None:
        run = record["run"]
        name = "-".join(str(run[key]) for key in ("kind", "dataset", "name", "fold", "seed") if key in run)
        with wandb.init(project=PROJECT, group=folder, name=name, id=record["hash"], config=run, reinit=True) as sent:
            for i, step in enumerate(series(record["result"])):
                sent.log(step, step=i)
            sent.summary.update({**flat(record["result"]), "seconds": record["made"]["seconds"]})

    return send


def flat(result: Any, prefix: str = "") -> dict[str, float]:
    """Return the numbers of nested dicts under joined names; lists are left out.

    >>> flat({"test": {"auc": 0.7}, "best": {"depth": 2}, "scores": [1, 2]})
    {'test.auc': 0.7, 'best.depth': 2}
    """
    if isinstance(result, (int, float)) and not isinstance(result, bool):
        return {prefix[:-1]: result}
    if not isinstance(result, dict):
        return {}
    return {k: v for name, part in result.items() for k, v in flat(part, f"{prefix}{name}.").items()}


def series(result: dict[str, Any]) -> list[dict[str, float]]:
    """Return the lists of dicts in a result, such as epochs or strengths, one after another."""
    return [flat(step) for part in result.values() if isinstance(part, list) for step in part]
