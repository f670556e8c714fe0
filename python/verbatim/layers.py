"""The layers of a model: its named parameters and buffers, found anew at every step.

A tensor may be replaced by another of the same shape (`load_state_dict(assign=True)`, a buffer that
a forward pass sets), but no layer may come, go, or change its shape or element type: the record
lists its layers before the first step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

import torch
from torch.nn.parameter import is_lazy

from verbatim import _native
from verbatim.digests import Digester, NamedTensor, dtype_name, flatten, local_part, placement
from verbatim.distributed import unwrap
from verbatim.errors import UsageError

Tensors = dict[str, torch.Tensor | None]
_AFTERWARDS = "Make the Recorder once the model has its final form, and leave that alone."


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a module keeps a tensor."""

    holder: Tensors
    key: str

    def tensor(self) -> torch.Tensor | None:
        return self.holder.get(self.key)


@dataclass(slots=True)
class ModelLayer:
    """One parameter or buffer."""

    id: int
    name: str
    kind: Literal["parameter", "buffer"]
    slot: Slot
    dtype: str
    shape: tuple[int, ...]
    """What this process holds of it."""
    placement: str
    also: dict[str, Slot] = field(default_factory=dict)
    """Other names of the same tensor: tied weights."""

    def describe(self) -> str:
        """As the record's `op`, without the other names."""
        text = f"{self.kind} {self.dtype}[{','.join(map(str, self.shape))}]"
        return f"{text} ({self.placement})" if self.placement else text


class ModelLayers:
    """All layers of some models: parameters first, then buffers, each in the models' order."""

    def __init__(self, models: Mapping[str, torch.nn.Module], *, buffers: bool) -> None:
        self._modules = [
            (_prefixed(prefix, name), module)
            for prefix, model in models.items()
            for name, module in unwrap(model).named_modules(remove_duplicate=False)
        ]
        self._children = [(name, module, dict(module._modules)) for name, module in self._modules]
        self._with_buffers = buffers
        self._counts = self._count()
        self.all: list[ModelLayer] = []
        self._add_all("parameter")
        if buffers:
            self._add_all("buffer")

    def tensors(self) -> list[torch.Tensor]:
        """The layers' tensors as they are now. UsageError where the model has another form."""
        if self._count() != self._counts or not self._children_stay():
            raise self._form_error()
        return [_checked(layer) for layer in self.all]

    def digest(self, digester: Digester, ids: Iterable[int] | None = None) -> list[bytes]:
        """Digests of the layers' tensors as they are now, all or some. UsageError as `tensors`."""
        tensors = self.tensors()
        chosen = range(len(tensors)) if ids is None else ids
        return digester.tensors((self.all[i].name, tensors[i]) for i in chosen)

    def marks(self) -> list[object]:
        """Something per layer that is another after a write that PyTorch knows of."""
        return [_mark(layer.slot.tensor()) for layer in self.all]

    def rows(self, initial: list[bytes]) -> list[_native.Layer]:
        """The layers as the record lists them."""
        return [
            (
                layer.kind,
                layer.name,
                layer.dtype,
                layer.shape,
                layer.placement,
                tuple(layer.also),
                initial[layer.id],
            )
            for layer in self.all
        ]

    def modules_named(self, names: Iterable[str]) -> dict[str, torch.nn.Module]:
        """The modules of these names. UsageError where there is none."""
        modules = dict(self._modules)
        for name in names:
            if name not in modules:
                near = get_close_matches(name, modules, 1)
                raise UsageError(
                    f'activations: the model has no module "{name}"',
                    f'Did you mean "{near[0]}"?' if near else "See model.named_modules().",
                )
        return {name: modules[name] for name in names}

    def updated_by(self, optimizer: torch.optim.Optimizer) -> list[int]:
        """Ids of the layers that the optimizer has under any of their names, ascending."""
        owned = {id(one) for group in optimizer.param_groups for one in group["params"]}
        return [
            layer.id
            for layer in self.all
            if any(id(slot.tensor()) in owned for slot in (layer.slot, *layer.also.values()))
        ]

    def optimizer_states(
        self, tensors: list[torch.Tensor], optimizers: Mapping[str, torch.optim.Optimizer]
    ) -> dict[int, list[NamedTensor]]:
        """The tensors of each parameter's state, by layer id, their names ascending; only where
        there is any."""
        states: dict[int, list[NamedTensor]] = {}
        for layer, tensor in zip(self.all, tensors, strict=True):
            twins = (slot.tensor() for slot in layer.also.values())
            owners = {id(one): one for one in (tensor, *twins) if one is not None}
            found = [
                optimizer.state[owner]
                for optimizer in optimizers.values()
                for owner in owners.values()
                if owner in optimizer.state
            ]
            named = [
                pair
                for state in found
                for key in sorted(state, key=str)
                for pair in flatten(state[key], str(key))
            ]
            if layer.kind == "parameter" and named:
                states[layer.id] = named
        return states

    def _add_all(self, kind: Literal["parameter", "buffer"]) -> None:
        known = {_identity(layer.slot.tensor()): layer for layer in self.all}
        for name, slot in self._slots(kind):
            tensor = slot.tensor()
            assert tensor is not None
            twin = known.get(_identity(tensor))
            if twin is not None and twin.kind == kind:
                twin.also[name] = slot
            else:
                known[_identity(tensor)] = self._add(name, kind, slot, tensor)

    def _add(
        self, name: str, kind: Literal["parameter", "buffer"], slot: Slot, tensor: torch.Tensor
    ) -> ModelLayer:
        _refuse_lazy(name, tensor)
        local = local_part(tensor)
        layer = ModelLayer(
            len(self.all), name, kind, slot, dtype_name(local.dtype), tuple(local.shape),
            placement(tensor),
        )
        self.all.append(layer)
        return layer

    def _slots(self, kind: Literal["parameter", "buffer"]) -> Iterator[tuple[str, Slot]]:
        for name, module in self._modules:
            holder = module._parameters if kind == "parameter" else module._buffers
            passing = module._non_persistent_buffers_set
            for key, tensor in holder.items():
                if tensor is not None and not (kind == "buffer" and key in passing):
                    yield _prefixed(name, key), Slot(holder, key)

    def _count(self) -> list[int]:
        """How many tensors each module has."""
        counts = []
        for _, module in self._modules:
            counts.append(sum(tensor is not None for tensor in module._parameters.values()))
            if self._with_buffers:
                counts.append(sum(tensor is not None for tensor in module._buffers.values()))
        return counts

    def _children_stay(self) -> bool:
        return all(module._modules == children for _, module, children in self._children)

    def _form_error(self) -> UsageError:
        for name, module, children in self._children:
            for key in {**children, **module._modules}:
                if module._modules.get(key) is not children.get(key):
                    return UsageError(
                        f"the module {_prefixed(name, key)} came, went or was replaced "
                        "since the Recorder was made",
                        _AFTERWARDS,
                    )
        known = {name for layer in self.all for name in (layer.name, *layer.also)}
        now = {name for name, _ in self._slots("parameter")}
        if self._with_buffers:
            now |= {name for name, _ in self._slots("buffer")}
        names = ", ".join(sorted(now ^ known)[:3]) or "one"
        verb = "came" if now - known else "went"
        return UsageError(
            f"a parameter or buffer {verb} since the Recorder was made: {names}", _AFTERWARDS
        )


def _checked(layer: ModelLayer) -> torch.Tensor:
    tensor = layer.slot.tensor()
    if tensor is None:
        raise UsageError(f"layer {layer.name} is gone", _AFTERWARDS)
    local = local_part(tensor)
    if local.shape != layer.shape or dtype_name(local.dtype) != layer.dtype:
        raise UsageError(
            f"layer {layer.name} is {_described(local)} now, and was "
            f"{layer.dtype}[{','.join(map(str, layer.shape))}] before the first step",
            "A layer keeps its shape and element type. Of a buffer that grows: register it with "
            "persistent=False, or record with buffers=False.",
        )
    for name, slot in layer.also.items():
        if _identity(slot.tensor()) != _identity(tensor):
            raise UsageError(
                f"layers {layer.name} and {name} were one tensor, and are two now",
                "Tie weights before the Recorder is made, and keep them tied.",
            )
    return tensor


def _described(tensor: torch.Tensor) -> str:
    return f"{dtype_name(tensor.dtype)}[{','.join(map(str, tensor.shape))}]"


def _refuse_lazy(name: str, tensor: torch.Tensor) -> None:
    if is_lazy(tensor):
        raise UsageError(
            f"{name} has no shape yet: its module is lazy",
            "Run one forward pass before the Recorder is made.",
        )


def _identity(tensor: torch.Tensor | None) -> object:
    """Equal of two tensors that are one: the same object, or the same memory in the same form."""
    if tensor is None or is_lazy(tensor):
        return id(tensor)
    local = local_part(tensor)
    if local.layout != torch.strided or local.is_meta or local.numel() == 0:
        return id(tensor)
    address = _address(local)
    if not address:
        return id(tensor)
    return (address, local.device, local.dtype, tuple(local.shape), local.stride())


def _address(tensor: torch.Tensor) -> int:
    """0 of a subclass that has no memory of its own."""
    try:
        return tensor.data_ptr()
    except RuntimeError:
        return 0


def _mark(tensor: torch.Tensor | None) -> object:
    if tensor is None:
        return None
    local = local_part(tensor)
    version = -1 if local.is_inference() else local._version
    return (_address(local), version)


def _prefixed(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix and name else prefix or name


def named_models(model: Any) -> dict[str, torch.nn.Module]:
    """What a caller gave as model, by name; a lone one has none."""
    return _named("model", torch.nn.Module, model)


def named_optimizers(optimizer: Any) -> dict[str, torch.optim.Optimizer]:
    """What a caller gave as optimizer, by name, without wrappers such as accelerate's."""
    named = _named("optimizer", torch.optim.Optimizer, optimizer)
    return {name: inner_optimizer(one) for name, one in named.items()}


def inner_optimizer(optimizer: Any) -> Any:
    """The torch optimizer within a wrapper, such as accelerate's, that has the same state.

    One with a state of its own (Lookahead, SAM) is no mere wrapper.
    """
    while True:
        inner = getattr(optimizer, "optimizer", None)
        if not isinstance(inner, torch.optim.Optimizer):
            return optimizer
        if getattr(optimizer, "state", None) is not inner.state:
            return optimizer
        optimizer = inner


def _named(what: str, kind: type[Any], given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, kind):
        return {"": given}
    if isinstance(given, Mapping):
        for name, one in given.items():
            if not isinstance(name, str) or not name or not isinstance(one, kind):
                raise UsageError(
                    f"{what} {name!r} is a {type(one).__name__}",
                    f"Give a {kind.__module__}.{kind.__qualname__}, or a dict of them by name.",
                )
        return dict(given)
    raise UsageError(
        f"{what} is a {type(given).__name__}",
        f"Give a {kind.__module__}.{kind.__qualname__}, or a dict of them by name.",
    )
