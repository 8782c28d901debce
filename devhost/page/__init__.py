"""A traced run as one HTML page that needs nothing else: no script, no font, no request.

`page.py` fills `page.html.j2`; `bars.py` says where a span stands on the time axis, `opened.py` what a call shows when
it is opened, `answer.py` how Markdown becomes HTML that is safe to look at.
"""
