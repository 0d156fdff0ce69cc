"""Results -> text, one file a format; nothing here writes."""
