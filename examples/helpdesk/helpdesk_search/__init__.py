"""Search in the help desk's manual and its past answers; knows nothing of Dify.

In: files. Out: hits with file and page. A module imports only modules to its left:
shared: `errors → folding → digest → location → making`
the manual, by words: `pdf → manual → chunks → stop_words → terms → index → search`
past answers, by similarity: `answers → embedding → ngrams → openai_embedding → embedding_choice → answers_index →
answers_search`
both: `wording`
"""
