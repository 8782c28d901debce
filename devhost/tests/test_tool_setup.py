"""What the command line says about tools, held against their YAML before anything is started."""

import shutil
from pathlib import Path

import pytest
import yaml

from devhost.errors import ParameterError
from devhost.protocol.wire import JsonObject
from devhost.scenario import read_tool_setups
from devhost.tools.setup import ToolSetup
from support.charts import API_KEY, charts
from support.plugins import CHARTS, TOOLBOX


def entity(setup: ToolSetup, name: str = "draw_chart") -> JsonObject:
    (found,) = [offered.entity for offered in setup.tools if offered.declared.identity.name == name]
    return found


def parameter(described: JsonObject, name: str) -> JsonObject:
    (found,) = [parameter for parameter in described["parameters"] if parameter["name"] == name]
    assert isinstance(found, dict)
    return found


def copied(tmp_path: Path, **changes: object) -> Path:
    """The plugin with its first tool's keys changed."""
    directory = tmp_path / "charts"
    shutil.copytree(CHARTS, directory)
    file = directory / "tools" / "draw_chart.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **changes}))
    return directory


def declared(name: str, kind: str, **more: object) -> JsonObject:
    text = {"en_US": name}
    return {"name": name, "type": kind, "form": "llm", "label": text, "human_description": text, **more}


def test_the_entity_is_what_the_yaml_says() -> None:
    described = entity(charts())
    assert described["identity"]["provider"] == "chartmakers/charts/charts"
    assert [p["name"] for p in described["parameters"] if p["form"] == "llm"] == [
        *("title", "values", "kind", "height", "caption", "with_grid"),
    ]
    assert [option["value"] for option in parameter(described, "kind")["options"]] == ["bar", "line"]
    height = parameter(described, "height")
    assert (height["type"], height["min"], height["max"], height["default"]) == ("number", 10, 400, 40)
    assert parameter(described, "palette")["type"] == "dynamic-select"
    assert described["runtime_parameters"] == {"color": "blue", "palette": "", "signature": ""}


def test_a_fixed_parameter_is_hidden_from_the_model() -> None:
    settings = ("height=120", "with_grid=no", "kind=line", "caption=true", "signature=signed by me")
    described = entity(charts(*(f"draw_chart.{setting}" for setting in settings)))
    names = ("title", "height", "with_grid", "kind", "caption")
    assert [parameter(described, name)["form"] for name in names] == ["llm", *["form"] * 4]
    assert described["runtime_parameters"] == {
        "height": 120,
        "with_grid": False,
        "kind": "line",
        "caption": "true",
        "color": "blue",
        "palette": "",
        "signature": "signed by me",
    }


def test_a_tool_that_needs_a_file_is_left_out_as_in_dify(tmp_path: Path) -> None:
    described = declared("photo", "file", required=True)
    setup = ToolSetup.read(copied(tmp_path, parameters=[described]), credentials={"charts": {"api_key": API_KEY}})
    assert [offered.declared.identity.name for offered in setup.tools] == ["export_table"]
    assert setup.left_out == ("draw_chart needs a file (photo), so Dify does not offer it to an agent",)


PIE = [{"value": "pie", "label": {"en_US": "Pie"}}]


@pytest.mark.parametrize(
    ("kind", "more", "reason", "value"),
    [
        ("string", {"required": True}, "project is empty: it needs a value (in Dify this", "x"),
        ("select", {"default": "x", "options": PIE}, "tool parameter project value x not in options", "pie"),
        ("number", {"default": "tall"}, "project must be a number, got 'tall' (in Dify this", "7"),
    ],
)
def test_a_tool_that_cannot_start_is_left_out_until_its_value_is_set(
    tmp_path: Path, kind: str, more: JsonObject, reason: str, value: str
) -> None:
    directory = copied(tmp_path, parameters=[declared("project", kind, **{**more, "form": "form"})])
    credentials = {"charts": {"api_key": API_KEY}}
    setup = ToolSetup.read(directory, credentials=credentials)
    assert [offered.declared.identity.name for offered in setup.tools] == ["export_table"]
    (sentence,) = setup.left_out
    assert sentence.startswith(f"draw_chart.project needs a valid value: {reason}")
    assert sentence.endswith(". Set it with --set draw_chart.project=VALUE")

    setup = ToolSetup.read(directory, credentials=credentials, fixed={"draw_chart": {"project": value}})
    assert len(setup.tools) == 2
    assert setup.left_out == ()


# --- credentials -----------------------------------------------------------------------------------------------------


def test_credentials_come_from_the_command_line_the_environment_and_the_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = {"CHARTS_API_KEY": "ck_environment", "CHARTS_REGION": "us", "PATH": "/bin"}
    (setup,) = read_tool_setups([CHARTS], ["charts.api_key=ck_line=with=signs"], [], environment)
    assert setup.credentials == {"charts": {"api_key": "ck_line=with=signs", "region": "us"}}
    assert environment == {"PATH": "/bin"}, "no other plugin inherits them"
    assert charts().credentials == {"charts": {"api_key": API_KEY, "region": "eu"}}
    monkeypatch.setenv("CHARTS_API_KEY", API_KEY)
    assert ToolSetup.read(CHARTS).credentials == charts().credentials


def test_secrets_are_known_and_never_in_a_repr() -> None:
    setup = charts("draw_chart.signature=signed by me")
    assert setup.secrets == [API_KEY, "signed by me"]
    assert API_KEY not in repr(setup)
    assert "signed by me" not in repr(setup)


@pytest.mark.parametrize(
    ("credentials", "settings", "words"),
    [
        ([], [], "api_key: --credential charts.api_key=VALUE, or CHARTS_API_KEY in the environment"),
        (["charts.key=ck_SECRET"], [], "no credential 'key'; there are: api_key (required), region"),
        (["chart.api_key=ck_SECRET"], [], "'chart' is not the name of one tool provider; there are: chartm"),
        (["charts.api_key=ck_1", "charts.region=SECRET"], [], "credential charts.region must be one of: eu, us"),
        (["charts.api_key=ck_1"], ["paint.kind=bar"], "'paint' is not the name of one tool; there are: chartm"),
        (["charts.api_key=ck_1"], ["draw_chart.sort=SECRET"], "draw_chart has no parameter 'sort'; there are: title,"),
        (["charts.api_key=ck_1"], ["draw_chart.kind=pie"], "value pie not in options ['bar', 'line']"),
        (["charts.api_key=ck_1"], ["draw_chart.height=tall"], "draw_chart.height needs a valid value"),
    ],
)
def test_an_error_does_not_contain_the_value(credentials: list[str], settings: list[str], words: str) -> None:
    with pytest.raises(ParameterError) as refused:
        read_tool_setups([CHARTS, TOOLBOX], credentials, settings, {})
    assert words in str(refused.value)
    assert "SECRET" not in str(refused.value)


def test_a_scripts_panel_names_tools_that_exist_and_set_goes_before_it() -> None:
    panel = {"draw_chart": {"color": "red", "height": "20"}}
    (setup,) = read_tool_setups([CHARTS], ["charts.api_key=ck_1"], ["draw_chart.height=30"], {}, panel)
    assert (entity(setup)["runtime_parameters"]["color"], entity(setup)["runtime_parameters"]["height"]) == ("red", 30)
    with pytest.raises(ParameterError, match=r"^panel paint\.kind: 'paint' is not the name of one tool"):
        read_tool_setups([CHARTS], ["charts.api_key=ck_1"], [], {}, {"paint": {"kind": "bar"}})


def test_a_name_of_two_tools_must_be_given_in_full(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(TOOLBOX, other)
    manifest = other / "manifest.yaml"
    manifest.write_text(manifest.read_text().replace("author: devhost-tests", "author: somebody"))
    with pytest.raises(ParameterError, match="'repeat' is not the name of one tool; there are: devhost-tests/tool"):
        read_tool_setups([TOOLBOX, other], [], ["repeat.times=3"], {})
    first, second = read_tool_setups([TOOLBOX, other], [], ["somebody/toolbox/toolbox/repeat.times=3"], {})
    assert "times" not in entity(first, "repeat")["runtime_parameters"]
    assert entity(second, "repeat")["runtime_parameters"]["times"] == 3
