"""The one loop that trains a stack of networks of one architecture."""

from fairbits.training.batches import Batch as Batch
from fairbits.training.batches import Replica as Replica
from fairbits.training.batches import Schedule as Schedule
from fairbits.training.batches import TrainingData as TrainingData
from fairbits.training.batches import joint_groups as joint_groups
from fairbits.training.loop import train as train
