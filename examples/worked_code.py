"""What "bits about sex" means, on twenty people and a code of two bits: the numbers in docs/concepts.md.

Usage: python examples/worked_code.py
"""

import numpy as np
import torch

from fairbits import certify
from fairbits.information import binary_entropy, joint_information, neuronwise_information, total_variation, word_tables

CHANCES = {"nurse": (0.9, 0.3), "teacher": (0.7, 0.5), "engineer": (0.2, 0.8)}  # that each of the two bits is 1
JOBS = ["nurse"] * 5 + ["teacher"] * 3 + ["engineer"] * 2 + ["nurse"] * 1 + ["teacher"] * 3 + ["engineer"] * 6
SEX = torch.tensor([0] * 10 + [1] * 10)  # ten women, ten men


def main() -> None:
    theta = torch.tensor([CHANCES[job] for job in JOBS], dtype=torch.float64)  # (20, 2)
    print("code      00    01    10    11")
    for name, row in zip(("women", "men"), word_tables(theta, SEX)[0], strict=True):
        print(f"{name:<7}" + "".join(f"{chance:6.3f}" for chance in row))
    disparity = total_variation(theta, SEX)
    print(f"one draw reveals {joint_information(theta, SEX):.3f} bits about sex")
    print("  the bits one by one:", " + ".join(f"{bit:.3f}" for bit in neuronwise_information(theta, SEX)))
    print(f"  largest disparity of any decision {disparity:.3f}; best guess of sex {(1 + disparity) / 2:.1%} right")
    for draws in (2, 8):
        print(f"{draws} draws of the same person reveal {joint_information(theta.repeat(1, draws), SEX):.3f} bits")
    job = torch.tensor([[float(j == name) for name in CHANCES] for j in JOBS])
    print(f"the job itself reveals {joint_information(job, SEX):.3f} bits")
    for rows in (1_000, 100_000):
        theta_many, sex_many = (np.repeat(part.numpy(), rows // 20, axis=0) for part in (theta, SEX))
        proved = certify(theta_many, sensitive_features=sex_many).total_variation
        print(f"{rows:,} rows with these shares prove a disparity of at most {proved:.3f}")
    right = torch.tensor([0.5, 0.55, 0.64, 0.75, 0.9, 1.0])
    print("guess right ", *(f"{p:6.0%}" for p in right))
    print("bits        ", *(f"{bits:6.3f}" for bits in 1 - binary_entropy(right)))


if __name__ == "__main__":
    main()
