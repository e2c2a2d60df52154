"""Tables and images with a sensitive attribute, verified, and populations whose true leakage is known."""

from fairbits.datasets.biased import BiasedImages as BiasedImages
from fairbits.datasets.biased import biased_digits as biased_digits
from fairbits.datasets.biased import biased_mnist as biased_mnist
from fairbits.datasets.dataset import Dataset as Dataset
from fairbits.datasets.mnist import Mnist as Mnist
from fairbits.datasets.mnist import fetch_mnist as fetch_mnist
from fairbits.datasets.populations import Population as Population
from fairbits.datasets.populations import make_independent as make_independent
from fairbits.datasets.populations import make_shifted_bits as make_shifted_bits
from fairbits.datasets.populations import make_xor as make_xor
from fairbits.datasets.shipped import load_adult as load_adult
from fairbits.datasets.shipped import load_bank as load_bank
from fairbits.datasets.shipped import load_compas as load_compas
