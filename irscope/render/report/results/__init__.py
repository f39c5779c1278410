"""Results of many compiles as a view of the report: those of `ablate`, `bench` and `upgrade`."""
