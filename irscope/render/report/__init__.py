"""The report: one HTML page of captures."""
