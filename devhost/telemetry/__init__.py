"""A trace as OpenTelemetry spans, by OpenTelemetry's conventions for generative AI.

In: a `Trace`. Out: spans of the agent, its model calls and its tool calls, sent to an OTLP server.
"""
