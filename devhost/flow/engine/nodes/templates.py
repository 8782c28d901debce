"""Jinja templates of prompts and template nodes.

A file from someone else must not run code here: Dify renders templates in a container, devhost in Jinja's sandbox.
"""

from collections.abc import Mapping
from typing import Any, override

from graphon.template_rendering import Jinja2TemplateRenderer, TemplateRenderError
from jinja2 import TemplateError
from jinja2.sandbox import SandboxedEnvironment


class SandboxedTemplates(Jinja2TemplateRenderer):
    @override
    def render_template(self, template: str, variables: Mapping[str, Any]) -> str:
        try:
            return SandboxedEnvironment().from_string(template).render(**variables)
        except TemplateError as error:
            raise TemplateRenderError(str(error)) from error
