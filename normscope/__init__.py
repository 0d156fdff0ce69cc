"""normscope: where a model's norms stand, and what they do to its activations."""
