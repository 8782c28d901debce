"""Records a traced run as a script: the model's answers and the tool outputs."""
