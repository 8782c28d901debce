"""The two agents, each a run of a strategy through devhost: sales, and the second reader of its drafts."""
