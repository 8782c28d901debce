"""The data for later runs: records of the conversation, the state variable, and approvals."""
