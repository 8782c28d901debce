"""The host: calls to it, what their failures mean, and files. This package alone calls the SDK's Session."""
