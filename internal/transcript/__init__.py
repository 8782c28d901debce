"""What is sent to the model: messages that only grow, and fit into its window and into one line to the host."""
