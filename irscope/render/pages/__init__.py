"""Pages of HTML beside the report."""
