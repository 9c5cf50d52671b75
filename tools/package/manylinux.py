"""Gives a wheel a platform tag, and its files an order and a time that depend on nothing but their contents.

    manylinux.py WHEEL PLATFORM FOLDER    prints the new name, in FOLDER

SOURCE_DATE_EPOCH is the time of all files.
"""

import base64
import hashlib
import os
import pathlib
import re
import sys
import time
import zipfile

RECORD, WHEEL = re.compile(r"[^/]+\.dist-info/RECORD"), re.compile(r"[^/]+\.dist-info/WHEEL")


def tagged(text: str, platform: str) -> str:
    return re.sub(r"^(Tag: \S+-\S+-)\S+$", rf"\g<1>{platform}", text, flags=re.MULTILINE)


def record_of(files: dict[str, bytes], own_name: str) -> bytes:
    lines = []
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},,\n" if name == own_name else f"{name},sha256={digest},{len(data)}\n")
    return "".join(lines).encode()


def main(given: str, platform: str, folder: str) -> None:
    source = pathlib.Path(given)
    name = "-".join((*source.stem.split("-")[:-1], platform)) + ".whl"
    moment = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    with zipfile.ZipFile(source) as old:
        modes = {info.filename: info.external_attr >> 16 & 0o111 for info in old.infolist()}
        files = {info.filename: old.read(info) for info in old.infolist() if not info.is_dir()}
    record = next(x for x in files if RECORD.fullmatch(x))
    wheel = next(x for x in files if WHEEL.fullmatch(x))
    files[wheel] = tagged(files[wheel].decode(), platform).encode()
    files[record] = record_of(files, record)
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for path in sorted(files, key=lambda x: (".dist-info/" in x, x)):  # the metadata last, as the format advises
            info = zipfile.ZipInfo(path, moment)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if modes[path] else 0o100644) << 16
            new.writestr(info, files[path])
    print(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
