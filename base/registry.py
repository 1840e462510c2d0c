"""Each of several kinds of a thing is registered by being there: a module of a package that names it."""

import pkgutil
from types import ModuleType
from typing import Any


def registered(package: ModuleType, attribute: str) -> dict[str, Any]:
    """The `attribute` of every module directly in `package` that has it, by the `name` of each, in order of names."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."))
    modules = map(pkgutil.resolve_name, names)
    members = [getattr(module, attribute) for module in modules if hasattr(module, attribute)]
    return {member.name: member for member in members}
