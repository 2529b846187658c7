"""Frank wolfe."""
