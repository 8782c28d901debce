"""Search over the help desk's manual and its past answers, without a word about Dify.

Files in, hits with file and page out. A module imports only modules to the left of it.
Shared: `errors → folding → digest → location → making`.
The manual, by words: `pdf → manual → chunks → terms → index → search`.
Past answers, by likeness: `answers → embedding → ngrams → openai_embedding → embedding_choice → answers_index →
answers_search`. Both end in `wording`.
"""
