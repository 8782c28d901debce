"""The agent, in packages.

A package imports only packages that stand above it in this list (tests/test_architecture.py checks that):

    flow              small pure functions over the SDK's messages of one round
    text              text and JSON as such: well-formed, redacted, cut, pasted
    thoughts          thoughts and visible text, told apart while they stream
    tooling           a tool call's name and arguments, parsed
    policy            the system prompt
    host              calls to the host, its failures, time, local files
    errors            what ends a run early, and the errors that Dify knows
    schema            JSON Schemas and values checked against them
    node              what the developer set in the node
    tools             the node's tools as the model sees them
    state             what a later run needs to go on from this one
    report            what happened, as values: events, usage, sources, files
    budget            how many tokens and tool calls a run may use
    approval          which calls the user approved, and the question that asks for it
    conversation      what is sent to the model
    results           what a tool says, read
    model             one model turn
    calls             the tool calls of one turn
    steps             what may come next in a loop
    answer            when a loop has its answer
    asking            a question that the model answers by a call of one virtual tool
    part              what a loop has of a run
    loop              ask, read, answer every call, append, decide
    render            events written out as messages
    dialogue          the conversation that a run is one turn of
    run               what one run is made of
    review            a second look at the answer
    finish            the end of a run
    agent             the function-calling agent
    plan_and_reflect  the third strategy, built from the same parts

Only ``host`` uses the SDK's Session. Everything that happens leaves the loop as an event, and only ``render`` turns
events into messages.
"""
