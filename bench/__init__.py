"""Speed as ratios.

Our kernels against the limits of this machine, compile time against a peer, start-up against numpy.
"""
