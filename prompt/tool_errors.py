"""All texts that a model reads instead of a tool's output: a call was refused, failed, or its output was unreadable.

The prefixes "tool arguments parse error", "tool arguments validation error" and "tool invoke error", and the sentence
"there is not a tool named …", are part of the plugin's contract: prompts of users refer to them.
"""

# The arguments are not a JSON object.
PARSE_ERROR = "tool arguments parse error: {problem}"
SEND_ONE_OBJECT = "send one JSON object"
ONE_CALL_IN_A_TURN = f"; {SEND_ONE_OBJECT}, and one call in a turn: several were joined, so none of them ran"
NOT_A_TEXT = "expected the text of a JSON object, got {kind}"
TOO_LONG = "longer than {most:,} characters"
ONLY_WHITE_SPACE = "expected a JSON object, got only white space"
NOT_AN_OBJECT = "expected a JSON object, got {kind}{advice}"
NOT_JSON = "{problem} at character {position}{near}{advice}"
NOT_A_NUMBER = "{constant} is not a JSON number, at character {position}"
TOO_MANY_DIGITS = "a number has more than {most:,} digits"
TOO_DEEP = "nested deeper than {most} levels"
HALF_A_PAIR_IN_TEXT = "half a surrogate pair in the text"
HALF_A_PAIR_IN_NAME = "half a surrogate pair in a name"
NUMBER_TOO_LARGE = "a number too large"

# The arguments do not fit the tool.
VALIDATION_ERROR = "tool arguments validation error: "
UNKNOWN_ARGUMENTS = "unknown argument {unknown}; valid arguments are: {known}"
MISSING_ARGUMENT = "missing required argument {name!r}"
ARGUMENT_IS_THERE_TWICE = "argument {name!r} is there twice; give it once"
ARGUMENTS_NOT_CHECKED = "they could not be checked against the schema"
HIDDEN_VALUE_DOES_NOT_FIT = "parameter {name!r} does not fit"
ANSWER_REPEATS_HIDDEN_VALUE = ": it holds a secret value, which an answer must not repeat; leave it out"
WRONG_PARAMETER = "parameter {place!r} {predicate}"
PROBLEM_AT_PARAMETER = "parameter {place!r}{predicate}"
WRONG_TYPE = "must be {wanted}, got {given}{advice}"
SEND_ITS_TEXT = "; send {kinds} or its text"
NOT_IN_OPTIONS = "value {value} not in options {options}"
DOES_NOT_SATISFY = "does not satisfy the schema"
WRONG_VALUE = "value {value}"
CLOSEST_OF = " (the closest of {count} alternatives)"
BLANK_SUBTASK = ": no subtask may be blank"
NO_PROBLEM_NAMED = ": name at least one problem of a draft that does not pass"

# There is no such tool.
UNKNOWN_TOOL = "there is not a tool named {name}; {known}"
KNOWN_TOOLS = "the tools are: {names}"
NEAREST_TOOLS = "the nearest are: {names}"
NO_TOOLS = "there are no tools"

# The call is not run.
REPEATED_FAILURE = "tool invoke error: repeated failure detected; skipped duplicate call"
REFUSED_AT_THE_END = "not run: no more tools run in this conversation turn"

# The call failed.
TOOL_FAILED = "tool invoke error: failed to execute tool"
NO_ANSWER_IN_TIME = "no answer before the run's deadline"
INVALID_INPUT = "invalid input"
RESULT_TOO_LARGE = "its result is too large"
UNAVAILABLE = "unavailable"
PARAMETERS_TOO_LARGE = "invalid input: too large; all parameters of a call together may have 4 MiB"

# The call ran, and its result has files or links. The user gets the files; the model reads these lines.
LINK = "link: {address}"
FILE_AT_ADDRESS = "file: {address}"
FILE = "file ({kind})"
NAMED_FILE = "file: {name} ({kind})"
UNKNOWN_TYPE = "unknown type"
HANDED_TO_USER = "{file}, handed to the user"
FILE_ON_THE_WEB = "{file}, {address}"
IMAGE_SHOWN = "image: {image}, shown to the user"
ADDRESS_TOO_LONG = "file: its address is too long, not handed on"
UNREADABLE_BYTES = "file: its bytes could not be read"
FILE_TOO_LARGE = "file: larger than 15 MiB, not handed on"
FILE_REFUSED = "file refused: only regular files of at most 5 MiB under /files can be passed on"

# A file of the user could not be fetched.
FETCHED_FILE_TOO_LARGE = "larger than {most:.2f} MiB, not shown"
NOT_FETCHED = "could not be fetched"
NOT_FETCHED_IN_TIME = "could not be fetched in time"
COMPRESSED = "could not be fetched: its server sends it compressed"
PRIVATE_NETWORK = "could not be fetched: its address leads into a private network"

# A reference names a part that a result does not have.
NAMES_THERE = "the names are {names}"
ITEMS_THERE = "it has the items 0 to {last}"
NOTHING_THERE = "it is empty"
NEITHER_OBJECT_NOR_ARRAY = "it is neither an object nor an array"
