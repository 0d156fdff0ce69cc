"""What users type: one file a command; thin, and free of torch until a target is asked for."""
