"""What TorchInductor writes: the code of a graph, its FX nodes as text, and folders of both."""
