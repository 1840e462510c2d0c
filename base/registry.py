"""Registries of plug-ins: a module in a package registers a thing by defining an attribute."""

import pkgutil
from types import ModuleType
from typing import Any


def registered(package: ModuleType, attribute: str) -> dict[str, Any]:
    """The `attribute` of every module directly in `package` that defines it, by the `name` of each, in order of
    names."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."))
    modules = map(pkgutil.resolve_name, names)
    members = [getattr(module, attribute) for module in modules if hasattr(module, attribute)]
    return {member.name: member for member in members}
