"""The numbers of the paper, and those of others that its table is compared with."""

from typing import Any

PAPER = "paper"
BAHNG = "Bahng et al. 2020, in the paper's table"

BEST_SETTINGS: dict[tuple[str, str], dict[str, Any]] = {  # table "best hyper-parameters" of the supplement
    ("compas", "BinaryMI"): {"gamma": 0.16, "batch_size": 242, "depth": 2, "width": 10},
    ("bank", "BinaryMI"): {"gamma": 0.03, "batch_size": 153, "depth": 5, "width": 40},
    ("adult", "BinaryMI"): {"gamma": 0.01, "batch_size": 228, "depth": 4, "width": 50},
    ("compas", "BinaryBernoulli"): {"gamma": 0.23, "batch_size": 175, "depth": 3, "width": 20},
    ("bank", "BinaryBernoulli"): {"gamma": 0.60, "batch_size": 240, "depth": 1, "width": 30},
    ("adult", "BinaryBernoulli"): {"gamma": 0.04, "batch_size": 225, "depth": 3, "width": 50},
}
for _settings in BEST_SETTINGS.values():
    _settings["learning_rate"] = 0.0001

# Of the strength with 1 - GPA and with AUC, on COMPAS: section "Stability and Complexity Analysis"
CORRELATIONS: dict[str, tuple[str, str]] = {
    "BinaryBernoulli": ("+0.924", "-0.836"),
    "BinaryMI": ("+0.781", "-0.760"),
    "VFAE": ("-0.168", "+0.173"),
    "AdvCls": ("little correlation", "little correlation"),
}

# Accuracy in per cent on Biased-MNIST with unbiased colours: {method: ({rho: accuracy}, by whom)}
BIASED_MNIST: dict[str, tuple[dict[float, str], str]] = {
    "Vanilla": ({0.995: "72.1", 0.99: "89.1"}, BAHNG),
    "ReBias": ({0.995: "76.0", 0.99: "88.1"}, BAHNG),
    "LearnedMixin+H": ({0.995: "78.2", 0.99: "88.3"}, BAHNG),
    "RUBi": ({0.995: "90.4", 0.99: "93.6"}, BAHNG),
    "BinaryMI": ({0.995: "89.08", 0.99: "88.54"}, PAPER),
    "BinaryBernoulli": ({0.995: "90.64", 0.99: "96.02"}, PAPER),
    "EnD": ({0.995: "93.92", 0.99: "96.02"}, "Tartaglione et al. 2021"),
    "bias-balanced learning": ({0.995: "about 97.7", 0.99: "about 98.1"}, "Hong and Yang 2021, quoted from memory"),
}
