"""What the developer set in the node: its parameters, its model, its tools and their schemas."""
