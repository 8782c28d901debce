"""The tool layer of this plugin: what a model sends → a call of a service → what the model reads.

A module imports only modules to its left: `inputs, results → base`. Only `base` knows Dify.
"""
