"""What a package of a plugin holds, and the rules for its files, rule by rule.

In: the plugin's folder. Out: the files that Dify's packager takes, and a `Problem` for each that breaks a rule.
"""
