"""Goes through the table of pictures for each device. What cannot be drawn, a record or a whole picture, is named, and left out."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable

from ._odd import presentable
from ._pictures import PICTURES, Picture
from ._results import Device, NoData
from ._style import MissingMatplotlib, in_style


def _draw_one(picture: Picture, device: Device, given: Device, out: pathlib.Path) -> list[pathlib.Path]:
    """given: the device with the records that were left out."""
    if not any(device.suites.get(suite) for suite in picture.suites):
        if any(given.suites.get(suite) for suite in picture.suites):
            raise NoData("all records of its suites are left out")
        suites = [suite for suite in picture.suites if device.has_gpu or not suite.startswith("gpu_")]
        raise NoData(f"there is no {' or '.join(f'{suite}.jsonl' for suite in suites)}")
    try:
        files = [file for drawing in picture.draw(device) for file in drawing.files()]
    except (NoData, MissingMatplotlib, MemoryError):
        raise
    except Exception as error:
        raise NoData(f"a record lacks something, or is odd ({type(error).__name__}: {error})") from error
    folder = out / device.name
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for ending, data in files:
        paths.append(folder / (picture.file + ending))
        paths[-1].write_bytes(data)
    return paths


def draw(
    devices: Iterable[Device], out: pathlib.Path, names: Iterable[str], say_missing: Callable[[str], None]
) -> list[pathlib.Path]:
    """Draws the pictures of these names for each device into out/<device>/ and returns the files written.

    Calls say_missing with one line for each picture that is left out, and for records that are. Raises MissingMatplotlib before
    anything is written.
    """
    wanted = list(names)
    written = []
    with in_style():
        for given in devices:
            pictures = [picture for picture in PICTURES if picture.name in wanted and picture.fits(given)]
            device, said = presentable(given, [suite for picture in pictures for suite in (*picture.suites, *picture.beside)])
            for line in said:
                say_missing(line)
            for picture in pictures:
                try:
                    written += _draw_one(picture, device, given, out)
                except NoData as error:
                    say_missing(f"{device.name}: no picture {picture.name}: {error}")
    return written
