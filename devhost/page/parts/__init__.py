"""The parts of a run as a page shows them.

In: a `TracedRun`. Out: a `ShownRun`: its rows on a time axis, its answer, sources, files, and what stands in each row.
"""
