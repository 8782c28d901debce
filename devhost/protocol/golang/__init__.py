"""JSON as Go reads and writes it, because Dify's plugin daemon is written in Go.

In: JSON values. Out: the values after Go has decoded and encoded them, or Go's error message. `values` handles any JSON
value, `shapes` describes structs and their validators, `decode` is encoding/json and `mapping` is mapstructure.
"""
