"""Search over the help desk's manual, without a word about Dify.

Manual folder in, hits with file and page out. A module imports only modules to the left of it:
`errors → folding → manual → chunks → terms → location → index → search → wording`.
A second source (answered questions, a PDF manual) is a reader beside `manual` and a table beside those in `index`.
"""
