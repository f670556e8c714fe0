"""The numeric environment of a run, under the keys that all records have."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterable
from typing import Any

import torch

from verbatim import _native
from verbatim.arguments import as_utf8

_CPU_VARIABLES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR")
_CUDA_VARIABLES = ("CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE")


def describe(device: torch.device) -> dict[str, str]:
    """Facts of this machine and process. What begins with "info." decides no bits."""
    facts = {**_native.processor_facts(), **_machine(), **_libraries()}
    facts["device.kind"] = device.type
    if device.type == "cuda":
        facts.update(_cuda(device))
    facts["threads_per_stage"] = str(torch.get_num_threads())
    facts["deterministic_algorithms"] = _yes(torch.are_deterministic_algorithms_enabled())
    facts["float32_matmul_precision"] = _matmul_precision()
    return {key: as_utf8(fact) for key, fact in facts.items()}


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # as in _tf32
        backends: Any = torch.backends
        return f"mkldnn {backends.mkldnn.matmul.fp32_precision}"


def _machine() -> dict[str, str]:
    system = platform.uname()
    return {
        "cpu.architecture": system.machine,
        "info.cores": str(os.cpu_count()),
        "info.host": system.node,
        "info.kernel": f"{system.system} {system.release}",
        "info.python": platform.python_version(),
        "libc.version": platform.libc_ver()[1],
    }


def _libraries() -> dict[str, str]:
    config = torch.__config__.show()
    facts = {
        "libtorch.version": str(torch.__version__),
        "libtorch.cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "libtorch.mkl": _line(config, r"oneAPI Math Kernel Library.*|Intel\(R\) Math Kernel.*"),
        "libtorch.onednn": _line(config, r"Intel\(R\) MKL-DNN.*|oneDNN.*"),
        "libtorch.openmp": _line(config, r"OpenMP.*"),
    }
    facts.update(_variables(_CPU_VARIABLES))
    return facts


def _line(config: str, pattern: str) -> str:
    found = re.search(pattern, config)
    return found.group(0).strip() if found else "none"


def _cuda(device: torch.device) -> dict[str, str]:
    properties = torch.cuda.get_device_properties(device)
    facts = {
        "cuda.gpu": properties.name,
        "cuda.compute_capability": f"{properties.major}.{properties.minor}",
        "cuda.driver": _driver(),
        "cuda.runtime": _runtime(),
        "cuda.cudnn": str(_cudnn_version()),
        "cuda.cudnn_benchmark": _on(torch.backends.cudnn.benchmark),
        "cuda.cudnn_deterministic": _on(torch.backends.cudnn.deterministic),
        "cuda.tf32": _tf32(),
    }
    facts.update(_variables(_CUDA_VARIABLES))
    return facts


def _driver() -> str:
    """The newest CUDA version that the driver supports, 12080 for 12.8."""
    version = ctypes.c_int()
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return "none"
    return str(version.value)


def _runtime() -> str:
    """The CUDA version that PyTorch was built with, in the form of `_driver`."""
    version = re.match(r"(\d+)\.(\d+)", str(torch.version.cuda))
    return str(int(version[1]) * 1000 + int(version[2]) * 10) if version else "none"


def _cudnn_version() -> object:
    version: Any = torch.backends.cudnn.version
    return version()


def _tf32() -> str:
    try:
        return _on(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)
    except RuntimeError:  # it was set by the newer interface, `fp32_precision`, which has more
        backends: Any = torch.backends
        matmul, convolution = backends.cuda.matmul, backends.cudnn.conv
        return f"matmul {matmul.fp32_precision}, convolution {convolution.fp32_precision}"


def _variables(names: Iterable[str]) -> dict[str, str]:
    return {f"variable.{name}": os.environ.get(name, "") for name in names}


def _on(value: bool) -> str:
    return "on" if value else "off"


def _yes(value: bool) -> str:
    return "true" if value else "false"
