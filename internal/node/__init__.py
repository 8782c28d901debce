"""The developer's settings in the node: its parameters, its model, its tools and their schemas."""
