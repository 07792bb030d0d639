"""A renderer and a compiler to start your own from: kernels as Python source."""

from tg_renderer_template.compiler import TemplateCompiler
from tg_renderer_template.renderer import TemplateRenderer

__all__ = ["TemplateCompiler", "TemplateRenderer"]
