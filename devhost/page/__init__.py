"""A traced run as one self-contained HTML page: no script, no font, no request.

In: a trace. Out: HTML. `page` fills `page.html.j2`; `bars` places spans on the time axis, `opened` says what a call
shows when it is opened, `attachments` what is shown of a file, and `answer` turns a model's Markdown into safe HTML.
"""
