"""What a later run needs: records of the conversation, the state variable, and approvals."""
