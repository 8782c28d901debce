"""The agent. Modules stand in one line; each imports only modules to its left, and a test holds them to it.

    what everyone needs     host_message → failures → errors → node_errors →
                            wellformed → fairness → secret_detection → redaction → node_secrets →
    what the node was given pasted → panel_values → model_selection → params → policy →
    one round, as values    flow → think_tags → markdown_tokens → markdown_code → thought_levels → thinking →
                            usage → sources → source_reading →
    tools as offered        tool_names → schema_dialect → schema_check → mcp_schema → schema_types → schema_repair →
                            tool_schema → toolbox →
    calls as made           tooling → virtual_tools → fitting → schema_sentences → arguments →
                            structured_output → guards →
    what tools bring        local_files → user_files → tool_failures → kept_text → tool_files → tool_variables →
                            tool_output →
    what happens            events → transcript → window → attachments →
    the host                deadline → session →
    a model's turn          assembly → display → content_parts → together → reading →
                            recovery → given_secrets → model_turn →
    its tool calls          planning → submission → side_by_side → tool_runner → tool_rounds →
    the run                 steps → answer → loop →
    written out             redacted_text → text_stream → log_content → log_metadata → log_preview → log_tree →
                            run_variables → run_outputs → render → pacing →
    put together            run → agent → asking → plan_params → subtask → plan_answer → plan_and_reflect

``session`` alone touches the SDK's Session. Everything that happens leaves the loop as an event, and render alone
turns events into messages.
"""
