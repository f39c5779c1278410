"""The timing constants of a GPU, measured in a minute: `python -m benchmarks.microbench -o constants.json`.

Each kernel is written in PTX and assembled by Triton's ptxas, so that the instructions that run are those that are
meant. Names that `irscope.device.clocks.Clock` has are its fields.
"""
