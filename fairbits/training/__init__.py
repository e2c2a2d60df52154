"""The one loop that trains a stack of networks of one architecture."""

from fairbits.training.batches import BalancedBatches, Batch, StratifiedBatches, TrainingData, split_rows
from fairbits.training.loop import train
from fairbits.training.plan import Opponent, Replica, Schedule, TrainingPlan
from fairbits.training.stacks import Stack

__all__ = [
    "BalancedBatches",
    "Batch",
    "Opponent",
    "Replica",
    "Schedule",
    "Stack",
    "StratifiedBatches",
    "TrainingData",
    "TrainingPlan",
    "split_rows",
    "train",
]
