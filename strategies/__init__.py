"""The strategy classes that Dify loads, which only connect the SDK to the agent and contain no logic."""
