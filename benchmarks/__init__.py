"""Speed and strength beside a named peer or a physical limit, measured in the same run."""
