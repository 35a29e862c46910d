"""Reports that a person wants to read: what they consist of (`content`), how they are written (`report`)."""
