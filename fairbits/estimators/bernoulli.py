"""BinaryBernoulli: the sum of what the bits tell one by one."""

from dataclasses import dataclass

from fairbits.estimators.code import CodeClassifier
from fairbits.information import neuronwise_bias, neuronwise_information, neuronwise_penalty


@dataclass(kw_only=True, eq=False, repr=False)
class BinaryBernoulliClassifier(CodeClassifier):
    """Penalise the information each stochastic neuron holds about S, summed over neurons (the paper's method).

    The sum is a surrogate: the whole code may tell far more than its bits one by one (two bits whose parity is S have
    sum 0 and joint information 1), and repeated bits are counted repeatedly. `BinaryMIClassifier` penalises the joint
    information itself.

    Differences from the published version: information and cross-entropy both in bits; the gradient passes through
    theta; batches are stratified; the penalty is warmed up; the prediction is the expected one unless asked otherwise.
    """

    def penalty(self, net, cell, theta, groups, *, noise):
        value = neuronwise_penalty(theta, groups)
        return value, value

    def leakage(self, theta, groups, *, noise):
        return neuronwise_information(theta, groups).sum(-1)

    def leakage_bias(self, theta, groups):
        return neuronwise_bias(theta, groups).sum(-1)
