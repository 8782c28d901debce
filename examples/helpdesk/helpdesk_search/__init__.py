"""Search in the help desk's manual and its past answers; knows nothing of Dify.

In: files. Out: hits with file and page. A module imports only modules to its left:
both: `errors`
the manual, by words: `pdf → manual → chunks → terms → index → search`
past answers, by meaning: `answers → likeness`
their texts for a model: `wording`
"""
