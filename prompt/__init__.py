"""The texts of the agent for models and users. The modules contain constants and no code."""
