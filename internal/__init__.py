"""The agent, in packages and modules.

Each imports only those above it in this list (tests/test_architecture.py checks that):

    clock             time: the clock, deadlines, and turns for long work
    json_values       visits, points into and checks JSON values
    flow              small pure functions over the SDK's messages of one round
    text              texts as such: well-formed, without secrets, cut to size; thoughts and visible text
    tooling           parses a tool call's arguments and finds its tool
    host              calls to Dify, their failures, local and remote files
    sources           sources that an answer may cite: read, numbered, listed
    errors            what ends a run early, and the five errors that Dify understands
    policy            the system prompt
    budget            the tokens and tool calls of a run: used, and allowed
    node              the parameters of the node, its model, its tools and their schemas
    call              a tool call in its shapes: written, judged, and its outcome
    memory            what a later run needs: records, the state, approvals
    events            what happens in a run, as frozen values
    transcript        a conversation as steps, and its messages, which only grow and fit into the model's window
    render            writes events out as text, log entries, files, variables and usage
    model             one model turn: request, stream, retries, fallback model, what the user sees of it
    calls             the tool calls of one turn: judged first, then run side by side, and their results read
    loop              asks, reads, answers every call, appends, decides
    run               what one run is made of: its parameters, its conversation, what its loops share
    end               the end of a run: its last words, its summary, and its state
    review            judgements by the model; a second look at the answer, by the node's criteria
    agent             the function-calling agent, and the start of every run
    plan_and_reflect  the strategy with a plan, subtasks, reflection and one answer

Only ``host`` uses the SDK's Session. Everything that happens leaves the loop as an event, and only ``render`` turns
events into messages.
"""
