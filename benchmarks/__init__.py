"""Speed and memory as ratios measured in one run on one thread, and results on real data with their limits."""
