"""The one table of pictures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from . import _heat, _landscape, _offload, _preemption, _roofline, _sharing, _speedup, _steal, _strategies
from ._results import Device
from ._style import Drawing


@dataclasses.dataclass(frozen=True)
class Picture:
    name: str
    file: str  # in the device's folder, without ending
    of: str  # "cpu", "gpu" or "any" device
    suites: tuple[str, ...]  # it is drawn from those of them that were measured
    draw: Callable[[Device], list[Drawing]]
    beside: tuple[str, ...] = ()  # suites that it shows too, if there are any

    def fits(self, device: Device) -> bool:
        return self.of in ("any", "gpu" if device.has_gpu else "cpu")


PICTURES = (
    Picture("roofline", "roofline", "cpu", _roofline.CPU_SUITES, _roofline.draw_cpu),
    Picture("roofline", "roofline", "gpu", _roofline.GPU_SUITES, _roofline.draw_gpu, (_roofline.PEDANTIC,)),
    Picture("speedup", "speedup", "cpu", _speedup.CPU_SUITES, _speedup.draw),
    Picture("speedup", "speedup", "gpu", _speedup.GPU_SUITES, _speedup.draw),
    Picture("heat", "heat", "cpu", ("heat",), _heat.draw),
    Picture("heat", "heat", "gpu", ("gpu_heat", "gpu_half_heat"), _heat.draw),
    Picture("random_heat", "random_heat", "gpu", _heat.RANDOM_SUITES, _heat.draw_random),
    Picture("landscape", "landscape", "any", _landscape.SUITES, _landscape.draw),
    Picture("offload", "offload", "gpu", _offload.SUITES, _offload.draw),
    Picture("sharing", "sharing", "gpu", _sharing.SUITES, _sharing.draw),
    Picture("preemption", "preemption", "gpu", _preemption.WAIT_SUITES, _preemption.draw_waits),
    Picture("preemption_cost", "preemption_cost", "gpu", _preemption.COST_SUITES, _preemption.draw_costs),
    Picture("strategies", "strategies", "gpu", _strategies.SUITES, _strategies.draw),
    Picture("steal", "steal", "cpu", _steal.SUITES, _steal.draw),
)
NAMES = tuple(dict.fromkeys(picture.name for picture in PICTURES))
