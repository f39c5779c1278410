"""Traces of tritonparse as captures: a line of JSON for each compile, launch and tuning."""
