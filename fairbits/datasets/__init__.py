"""Tables and images with a sensitive attribute, verified, and populations whose true leakage is known."""

from fairbits.datasets.biased import BiasedImages, biased_digits, biased_mnist
from fairbits.datasets.dataset import Dataset
from fairbits.datasets.mnist import Mnist, fetch_mnist
from fairbits.datasets.populations import Population, make_independent, make_shifted_bits, make_xor
from fairbits.datasets.shipped import load_adult, load_bank, load_compas

__all__ = [
    "BiasedImages",
    "Dataset",
    "Mnist",
    "Population",
    "biased_digits",
    "biased_mnist",
    "fetch_mnist",
    "load_adult",
    "load_bank",
    "load_compas",
    "make_independent",
    "make_shifted_bits",
    "make_xor",
]
