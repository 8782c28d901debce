"""What happened in a run, as frozen values.

In: nothing but values. Out: events, usage, sources, files and the agent's own sentences, which the agent makes and
``render`` reads.
"""
