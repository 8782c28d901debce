"""What the nodes of one turn share.

In: a `FlowFile` and a `FlowTurn`. Out: the variable pool, as the engine fills it and as plain JSON, the forms that
wait, and the mistake that ends the turn.
"""
