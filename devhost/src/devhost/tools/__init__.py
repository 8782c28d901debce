"""The tools that an agent can use: tools of plugins and of MCP servers, recorded tools, and Python functions."""
