"""The strategy classes that Dify loads. They only connect the SDK to the agent and contain no logic."""
