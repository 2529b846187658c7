"""What a report looks like: terminal, JSON, page."""
