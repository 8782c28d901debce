"""The provider behind the strategies. It has no credentials of its own: models and tools bring theirs."""

from dify_plugin import AgentProvider


class GPT5AgentProvider(AgentProvider):
    """Nothing to validate; the class is what the provider's YAML points to."""
