"""Methods to compare with: here those without a network of ours; `fairbits` itself lists the others.

Those of other libraries need ``pip install 'fairbits[compare]'``. The files `penalised`, `latent`,
`compared`, `posterior_rule` and `hard_words` are bases; every other file but `group_columns` holds methods.
"""

from fairbits.rivals.bayes_rule import BayesRuleClassifier as BayesRuleClassifier
from fairbits.rivals.compared import ComparedClassifier as ComparedClassifier
from fairbits.rivals.fair_tree import FairTreeClassifier as FairTreeClassifier
from fairbits.rivals.leace import LeaceClassifier as LeaceClassifier
from fairbits.rivals.other_libraries import AIF360LFRClassifier as AIF360LFRClassifier
from fairbits.rivals.other_libraries import ExponentiatedGradientClassifier as ExponentiatedGradientClassifier
from fairbits.rivals.other_libraries import FairlearnAdversarialClassifier as FairlearnAdversarialClassifier
from fairbits.rivals.other_libraries import ThresholdOptimizerClassifier as ThresholdOptimizerClassifier
from fairbits.rivals.posterior_rule import PosteriorRule as PosteriorRule
from fairbits.rivals.programme_code import LinearProgrammeCode as LinearProgrammeCode
