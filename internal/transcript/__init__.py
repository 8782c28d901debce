"""What is sent to the model: messages that only grow, and that fit into its window and into one line."""
