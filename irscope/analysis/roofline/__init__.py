"""The roofline of a launch: its arithmetic and its bytes against the peaks of a part."""
