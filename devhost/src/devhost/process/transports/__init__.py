"""The three ways in which Dify runs a plugin: a local process, remote debugging over TCP, and serverless over HTTP."""
