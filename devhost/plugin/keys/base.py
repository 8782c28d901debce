"""What all declared values have in common, and a text in the languages of Dify."""

from pydantic import BaseModel, ConfigDict, model_validator


class Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class I18n(Declared):
    """Dify fills a language that is missing with English."""

    en_US: str  # noqa: N815 - the key in the YAML
    zh_Hans: str = ""  # noqa: N815
    ja_JP: str = ""  # noqa: N815
    pt_BR: str = ""  # noqa: N815

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, value: object) -> object:
        if isinstance(value, dict):
            return {language: value.get(language) or value.get("en_US") for language in cls.model_fields}
        return value
