"""The one loop that trains a stack of networks of one architecture."""

from fairbits.training.loop import train as train
from fairbits.training.plan import Batch as Batch
from fairbits.training.plan import Replica as Replica
from fairbits.training.plan import Schedule as Schedule
from fairbits.training.plan import TrainingData as TrainingData
from fairbits.training.plan import joint_groups as joint_groups
