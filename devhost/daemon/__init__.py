"""What Dify's plugin daemon does to whatever passes through it, as pure functions (source of 2026-08-21).

Requests and answers are decoded into the daemon's structs and written again; see the module for each direction:

    go_json      JSON as Go reads and writes it
    go_types     the shapes of structs, and what their validators require
    go_decode    encoding/json: a value in a shape, or the decoder's own words
    go_mapping   mapstructure: the same for a request that has been parsed before
    requests     a plugin's backwards calls, on their way to Dify's API
    answers      what the API answers, and the messages of a strategy or a tool
    invocations  what a manifest must permit for each kind of call, and the words around its failure
    failures     what a plugin reads when the API behind the daemon fails
    run_messages the messages of a run as the daemon decodes them
    node_stream  what the Agent node reads of a run
    bridge       the queue that loses messages when they come faster than they are passed on
"""
