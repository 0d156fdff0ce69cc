"""Models built from a spec: where the norms stand, what they are, how the code is written."""
