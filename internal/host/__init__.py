"""The host: calls to it, the meaning of their failures, and files. Only this package calls the SDK's Session."""
