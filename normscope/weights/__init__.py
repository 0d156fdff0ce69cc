"""What a checkpoint's files say of its norms, read without loading the model."""
