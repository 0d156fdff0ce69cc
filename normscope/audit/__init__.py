"""Rules and expectations over many checkpoints; knows no torch."""
