"""The agent, in packages and modules.

Each module imports only modules above it in this list (tests/test_architecture.py checks this):

    clock             the clock, deadlines, and pauses in long work
    json_values       visits JSON values, resolves pointers and finds inexact numbers
    flow              small pure functions for the SDK's messages of one round
    text              makes texts well-formed, removes secrets, cuts to size, separates thoughts
    tooling           parses a tool call's arguments and finds its tool
    host              calls to Dify, their failures, local and remote files
    sources           parses, numbers and lists the sources that an answer may cite
    errors            stop reasons, and the five errors that Dify understands
    policy            the system prompt
    budget            the usage and the limits of a run: tokens and tool calls
    node              the parameters of the node, its model, its tools and their schemas
    call              a tool call as the model wrote it, after validation, and its outcome
    memory            the data for a later run: records, the state, approvals
    events            the events of a run, as frozen values
    transcript        a conversation as steps and as messages that fit into the model's window
    render            writes events as text, log entries, files, variables and usage
    model             one model turn: request, stream, retries, fallback model, visible text
    calls             the tool calls of one turn: checks all calls, then runs them in parallel
    loop              asks, reads, answers every call, appends, decides
    run               the parts of a run: parameters, conversation, shared objects
    end               the end of a run: its last text, its summary, and its state
    review            judgements by the model, and the review of an answer by the node's criteria
    agent             the function-calling agent, and the start of every run
    plan_and_reflect  the strategy with a plan, subtasks, reflection and one answer

Only ``host`` uses the SDK's Session. The loop reports everything as an event, and only ``render`` converts events to
messages.
"""
