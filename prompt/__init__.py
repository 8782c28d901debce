"""The texts that the agent says of itself: constants, no code."""
