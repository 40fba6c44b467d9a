"""Digests of values and of functions that depend on what these are, not on where they live.

Equal values have equal digests: two arrays of the same entries whatever their byte order and
layout, two objects of the same state. A function is known by its code, defaults, attributes and
closure and by the globals that it names, and so on through the functions that it calls, up to
packages that are installed or part of this one: those count by the names that are asked of them.
(``joblib.hash`` looks at identities, and at the names of functions.)
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

__all__ = ["fingerprint"]

_INSTALLED = ("site-packages", "dist-packages")
#: What these compile or keep computes what the function under it says.
_WRAPPERS = ("functools", "jax", "jaxlib", "numba")
#: What a class has beside what its author wrote.
_OF_CLASSES = frozenset(
    "__annotate__ __annotate_func__ __annotations__ __annotations_cache__ __abstractmethods__ "
    "__classdictcell__ __dataclass_fields__ __dataclass_params__ __dict__ __doc__ "
    "__firstlineno__ __module__ __parameters__ __qualname__ __slotnames__ __static_attributes__ "
    "__weakref__ "
    "_abc_impl".split()
)
_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))


def fingerprint(value: Any) -> str:
    """Return a digest of a value or function, the same in every process.

    Parameters
    ----------
    value : object
        Numbers, strings, arrays, containers and functions, and whatever can be pickled.

    Returns
    -------
    str
        64 hexadecimal digits. Numbers of different types have different ones.

    Raises
    ------
    TypeError
        If something cannot be told by its value, such as a lock or an open file.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn._fingerprint import fingerprint
    >>> ones = np.ones(3)
    >>> fingerprint((ones, ones)) == fingerprint((ones, np.ones(3, ">f8")))
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    try:
        return _Reader().digest(value).hex()
    except RecursionError:
        raise TypeError("it is nested too deeply") from None
    except Exception as error:  # whatever the methods of an object for pickle raise
        raise TypeError(str(error)) from error


def _own(name: str, file: str | None) -> bool:
    """Whether a module is the user's: neither installed nor part of Python or of this package."""
    if name == "__main__":
        return True
    top = name.partition(".")[0]
    if top == __name__.partition(".")[0] or top in sys.stdlib_module_names:
        return False
    return file is None or not any(each in Path(file).parts for each in _INSTALLED)


class _Reader:
    """Digests of values, each object read once."""

    def __init__(self) -> None:
        #: By identity; the objects are kept, so that no other gets the identity of one.
        self.known: dict[int, tuple[Any, bytes]] = {}
        #: Depths of the objects that are being read: what refers to itself ends there.
        self.open: dict[int, int] = {}

    def digest(self, value: Any) -> bytes:
        """Return the digest of any value."""
        if isinstance(value, _ATOMS) and type(value) in _ATOMS:
            # Python refuses to write long integers in decimals.
            text = hex(value) if type(value) is int else repr(value)
            return self._join(type(value).__name__.encode(), text.encode())
        key = id(value)
        if key in self.known:
            return self.known[key][1]
        if key in self.open:
            return self._join(b"again", str(self.open[key]).encode())
        self.open[key] = len(self.open)
        try:
            kind, *parts = self._parts(value)
            found = self._join(kind.encode(), *parts)
        finally:
            del self.open[key]
        self.known[key] = value, found
        return found

    @staticmethod
    def _join(*parts: bytes) -> bytes:
        digest = hashlib.sha256()
        for part in parts:
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.digest()

    def _parts(self, value: Any) -> Iterator[Any]:
        """Yield the kind of a value, then digests of all it consists of."""
        kind = type(value)
        if kind is np.ndarray and value.dtype.hasobject:
            yield f"objects {value.dtype} {value.shape}"
            yield self.digest(value.ravel().tolist())
        elif kind is np.ndarray:
            native = value.astype(value.dtype.newbyteorder("="), order="C", copy=False)
            yield f"array {native.dtype} {value.shape}"
            yield native.tobytes()
        elif kind in (tuple, list):
            yield kind.__name__
            yield from map(self.digest, value)
        elif kind in (set, frozenset):
            yield kind.__name__
            yield from sorted(map(self.digest, value))
        elif kind is dict:
            yield "dict"
            yield from sorted(self.digest(key) + self.digest(each) for key, each in value.items())
        elif isinstance(value, FunctionType):
            yield from self._function(value)
        elif isinstance(value, CodeType):
            yield from self._code(value)
        elif isinstance(value, MethodType):
            yield "method"
            yield from map(self.digest, (value.__func__, value.__self__))
        elif isinstance(value, ModuleType):
            yield f"module {value.__name__}"
        elif isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, staticmethod | classmethod):
            yield kind.__name__
            yield self.digest(value.__func__)
        elif isinstance(value, property):
            yield "property"
            yield from map(self.digest, (value.fget, value.fset, value.fdel))
        elif isinstance(value, functools.cached_property):
            yield "cached property"
            yield self.digest(value.func)
        elif inner := self._wrapped(value):
            yield f"{kind.__module__}.{kind.__qualname__}"
            yield self.digest(inner)
        elif isinstance(value, BuiltinFunctionType):
            yield f"builtin {value.__module__} {value.__qualname__}"
            if not isinstance(value.__self__, ModuleType):
                yield self.digest(value.__self__)
        else:
            yield from self._reduced(value)

    @staticmethod
    def _wrapped(value: Any) -> Any:
        """Return the function that a library has compiled, or keeps the results of."""
        if type(value).__module__.partition(".")[0] in _WRAPPERS:
            return getattr(value, "py_func", None) or getattr(value, "__wrapped__", None)
        return None

    def _reduced(self, value: Any) -> Iterator[Any]:
        """Yield what pickle would keep of an object, less what it has only computed."""
        registered = copyreg.dispatch_table.get(type(value))
        reduced = value.__reduce_ex__(4) if registered is None else registered(value)
        if isinstance(reduced, str):
            yield f"{type(value).__module__} {reduced}"
            return
        make, arguments, state, entries, items = (*reduced, None, None, None)[:5]
        yield "object"
        yield self.digest(make)
        yield self.digest(arguments)
        if isinstance(state, dict):
            made = {key for key, each in _attributes(type(value)).items() if _is_cache(each)}
            state = {key: each for key, each in state.items() if key not in made}
        yield self.digest(state)
        yield self.digest(None if entries is None else list(entries))
        yield self.digest(None if items is None else dict(items))

    def _function(self, function: FunctionType) -> Iterator[Any]:
        space = function.__globals__
        own = _own(space.get("__name__", "__main__"), space.get("__file__"))
        if not own and _importable(function):
            yield f"function {function.__module__}.{function.__qualname__}"
            return
        yield "function"
        yield self.digest(function.__code__)
        yield self.digest((function.__defaults__, function.__kwdefaults__, vars(function)))
        for cell in function.__closure__ or ():
            try:
                yield self.digest(cell.cell_contents)
            except ValueError:  # not filled yet
                yield b"empty"
        if not own:
            return
        for name in sorted(set(_names(function.__code__)) & space.keys()):
            yield name.encode()
            yield self._global(space[name], function.__code__)
        for name in sorted(set(_imported(function.__code__, space.get("__package__") or ""))):
            yield name.encode()
            yield self._global(_module(name), function.__code__)

    def _global(self, value: Any, code: CodeType) -> bytes:
        """Return the digest of a global; of a module of the user's, of what is taken from it."""
        if not isinstance(value, ModuleType) or not _own(
            value.__name__, getattr(value, "__file__", None)
        ):
            return self.digest(value)
        key = id(value)
        if key in self.open:
            return self._join(b"again", value.__name__.encode())
        self.open[key] = len(self.open)
        try:
            asked = {name for each in _codes(code) for name in each.co_names}
            parts = [
                (name, self._global(vars(value)[name], code))
                for name in sorted(asked & vars(value).keys())
            ]
        finally:
            del self.open[key]
        return self.digest(parts)

    def _code(self, code: CodeType) -> Iterator[Any]:
        yield "code"
        yield code.co_code
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        yield self.digest((shape, names, getattr(code, "co_exceptiontable", b"")))
        yield self.digest(code.co_consts)

    def _class(self, kind: type) -> Iterator[Any]:
        yield f"class {kind.__module__}.{kind.__qualname__}"
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if not _own(kind.__module__, file):
            return
        yield from map(self.digest, kind.__bases__)
        for name, value in sorted(vars(kind).items()):
            if name not in _OF_CLASSES:
                yield name.encode()
                try:
                    yield self.digest(value)
                except TypeError:  # made by a library, such as the slots of a class
                    yield type(value).__qualname__.encode()


def _attributes(kind: type) -> dict[str, Any]:
    """Return the attributes of a class and of its bases."""
    return {name: value for each in reversed(kind.__mro__) for name, value in vars(each).items()}


def _is_cache(attribute: object) -> bool:
    return isinstance(attribute, functools.cached_property)


def _importable(function: FunctionType) -> bool:
    """Whether a name leads to a function: not to one made inside another."""
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function or getattr(found, "__wrapped__", None) is function


def _module(name: str) -> ModuleType | None:
    """Return a module that a function imports, if that is the user's."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
        if spec is not None and _own(name, spec.origin):
            return importlib.import_module(name)
    except (ImportError, ValueError):
        pass
    return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the globals that a function and those inside it read."""
    for each in _codes(code):
        for instruction in dis.get_instructions(each):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield instruction.argval


def _imported(code: CodeType, package: str) -> Iterator[str]:
    """Yield the modules that a function and those inside it import."""
    for each in _codes(code):
        instructions = list(dis.get_instructions(each))
        for i, instruction in enumerate(instructions):
            if instruction.opname == "IMPORT_NAME":
                level = instructions[i - 2].argval
                name = "." * level + instruction.argval
                yield importlib.util.resolve_name(name, package) if level else name
