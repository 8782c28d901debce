"""The three ways in which Dify runs a plugin: a local process, remote debugging over TCP, and serverless over HTTP.

In: envelopes for the plugin, as JSON objects. Out: the plugin's JSON objects and its printed lines, passed to a
`TransportListener` from threads of the transport. `program` is the plugin's own process.
"""
