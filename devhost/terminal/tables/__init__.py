"""Parts of a run as objects that rich prints.

In: outputs, logs, failures. Out: texts, trees and tables.
"""
