"""The one loop that trains a stack of networks of one architecture."""

from fairbits.training.batches import BalancedBatches as BalancedBatches
from fairbits.training.batches import Batch as Batch
from fairbits.training.batches import StratifiedBatches as StratifiedBatches
from fairbits.training.batches import TrainingData as TrainingData
from fairbits.training.batches import joint_groups as joint_groups
from fairbits.training.batches import split_rows as split_rows
from fairbits.training.loop import train as train
from fairbits.training.plan import Opponent as Opponent
from fairbits.training.plan import Replica as Replica
from fairbits.training.plan import Schedule as Schedule
from fairbits.training.plan import TrainingPlan as TrainingPlan
from fairbits.training.stacks import Stack as Stack
