"""The caption below a picture: device, versions and date out of the records that are drawn, then what the picture shows."""

from __future__ import annotations

from collections.abc import Iterable

from ._results import Record


def _listed(words: Iterable[str]) -> str:
    found = list(dict.fromkeys(words))
    return ", ".join(found[:-1]) + (" and " if len(found) > 1 else "") + found[-1]


def caption(records: list[Record], *sentences: str, with_peers: bool = True) -> str:
    """`records`: all that the picture shows."""
    dates = sorted({str(r["date"])[:10] for r in records})
    commits = list(dict.fromkeys(str(r["commit"]) for r in records))
    peers = [str(r["peer"]) for r in records if "peer" in r]
    peers = [p for p in peers if p != "none" and not p.startswith("wsgemm")]
    origin = f"{_listed(str(r['device']) for r in records)}; wsgemm at commit{'s' if len(commits) > 1 else ''} {_listed(commits)}"
    if peers and with_peers:
        origin += f"; {_listed(peers)}"
    origin += f"; measured {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "")
    return " ".join([origin + ".", *sentences])
