"""`devhost model`: calls one model of a model plugin, or lists the plugin's models."""

import base64
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.rule import Rule
from rich.text import Text

from devhost.files import LocalFile
from devhost.hosting import PluginModelOptions
from devhost.limits import HostLimits
from devhost.model_plugin import ModelPlugin, PluginModel, PluginModelError
from devhost.models.backend import Content, MediaPart, ModelDescription, ModelRequest, TextPart, UserMessage, text_of
from devhost.node.outputs.run import RunError
from devhost.options import argument, color_option, command, json_option, option, print_json, traceback_option
from devhost.overview import line, model_lines
from devhost.protocol.wire import JsonObject
from devhost.sent_tools import asked_whether_tools_are_sent
from devhost.terminal.screen import View, ViewOptions, open_console
from devhost.terminal.tables import facts_table, usage_line


@dataclass(frozen=True)
class CallOptions:
    """The options of `devhost model`."""

    plugin: Path = argument("DIR")
    prompt: str | None = argument("[PROMPT]")
    files: tuple[Path, ...] = option("--file PATH...", "A picture or another file for the model; repeatable.")
    blocking: bool = option("--blocking", "Ask for the whole answer at once, not for a stream.")
    as_json: bool = json_option()
    traceback: bool = traceback_option()
    color: bool = color_option()

    def request(self) -> ModelRequest:
        """Returns a request without a model, so that mistakes in the options are found before the plugin starts."""
        parts = tuple(_part(LocalFile.read(path, HostLimits())) for path in self.files)
        content: Content = self.prompt
        if parts:
            content = (TextPart(type="text", data=self.prompt or ""), *parts)
        return ModelRequest(
            provider="",
            model="",
            mode="chat",
            completion_params={},
            prompt_messages=(UserMessage(role="user", content=content),),
            stream=not self.blocking,
        )


def _part(file: LocalFile) -> MediaPart:
    facts = file.described("")
    return MediaPart.model_validate(
        {
            **facts,
            "type": facts["type"] if facts["type"] in {"image", "audio", "video"} else "document",
            "format": facts["extension"].removeprefix("."),
            "base64_data": base64.b64encode(file.path.read_bytes()).decode(),
        }
    )


@dataclass
class CallAnswer:
    """The response of a model as far as it has arrived."""

    text: str = ""
    usage: JsonObject | None = None
    finish_reason: str | None = None
    first_seconds: float | None = None
    """The seconds until the first text."""
    seconds: float = 0.0
    error: RunError | None = None


class ModelView(View):
    """The view of one model call."""

    def open(self, model: ModelDescription) -> None:
        self._console.print(facts_table("", "", "", model))
        self.begin_answer()

    def show(self, text: str) -> None:
        self._say(text)

    def close(self, answered: CallAnswer) -> None:
        self._end_answer()
        self._section("usage", None if answered.usage is None else usage_line(answered.usage))
        self._console.print(Rule(style="dim"))
        if answered.first_seconds is None:
            first = ""
        else:
            first = f", the first words after {answered.first_seconds:.2f} s"
        ended = f"{answered.finish_reason or 'finished'} in {answered.seconds:.2f} s{first}"
        self._end(answered.error, answered.seconds, Text(ended, "green"))


def called(model: PluginModel, request: ModelRequest, view: ModelView) -> CallAnswer:
    """Calls a model, shows its text as it arrives, and returns the response or the error."""
    answered = CallAnswer()
    began = time.monotonic()
    try:
        for chunk in model.invoke(request):
            delta = chunk["delta"]
            text = text_of(chunk)
            if text and answered.first_seconds is None:
                answered.first_seconds = round(time.monotonic() - began, 3)
            view.show(text)
            answered.text += text
            answered.usage = delta["usage"] or answered.usage
            answered.finish_reason = delta["finish_reason"] or answered.finish_reason
    except PluginModelError as error:
        answered.error = replace(error.failed, node=None)  # a model call has no Agent node
    answered.seconds = round(time.monotonic() - began, 3)
    return answered


@command(CallOptions, PluginModelOptions)
def model(options: CallOptions, models: PluginModelOptions) -> int:
    """Call one model of a model plugin, or list its models.

    DIR is the plugin's folder. The answer is shown as it arrives. Without PROMPT, the command lists the plugin's models
    and credentials, and says whether tools reach the provider.

    For example:
      devhost model devhost/tests/fixtures/gateway
      devhost model devhost/tests/fixtures/gateway "Say hello" --model gpt-4.1 --completion max_tokens=200
    """
    console = open_console(stderr=options.as_json, color=options.color)
    if options.prompt is None:
        for text in model_lines(ModelPlugin(options.plugin).declaration):
            console.print(text, soft_wrap=True)
        tools = asked_whether_tools_are_sent(options.plugin, models.name, models.given_credentials)
        console.print(line("sends tools", description=tools), soft_wrap=True)
        return 0
    request = options.request()
    view = ModelView(console, ViewOptions(traceback=options.traceback))
    chosen = models.of_plugin(options.plugin)
    sent = {"model": chosen.description.name, "completion_params": dict(chosen.description.completion_params)}
    models.plugins.tell(view.screen)
    view.open(chosen.description)
    answered = called(chosen, request.model_copy(update=sent), view)
    if options.as_json:
        print_json({**sent, **asdict(answered)})
    view.close(answered)
    return int(answered.error is not None)
