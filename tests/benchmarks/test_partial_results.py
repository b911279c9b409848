"""Results that lack what earlier ones have measured never take their place."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from documentation import ROOT

WRITE = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from measure import REPLACE, RESULTS, Figure, write_results

def write(**values):
    write_results("speed", "Speed", "Notes.", [Figure(k, v) for k, v in values.items()])
    kept = json.loads((RESULTS / "speed.json").read_text())["figures"]
    return {each["what"]: each["measured"] for each in kept}

found = [write(ours=1.0, peer=2.0), write(ours=3.0), write(ours=3.0, peer=None)]
found.append(write(ours=4.0, peer=5.0, another=6.0))
os.environ[REPLACE] = "1"
found.append(write(ours=7.0))
print(json.dumps(found))
"""


def test_only_what_was_measured_as_a_whole_takes_the_place_of_what_was(tmp_path):
    done = subprocess.run(  # noqa: S603 (this file's own script)
        [sys.executable, "-c", WRITE, str(ROOT / "benchmarks")],
        env={**os.environ, "RIDGEFOLD_RESULTS": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    *said, answer = done.stdout.splitlines()
    whole, fewer, absent, again, replaced = json.loads(answer)
    assert whole == fewer == absent == {"ours": 1.0, "peer": 2.0}
    assert again == {"ours": 4.0, "peer": 5.0, "another": 6.0}
    assert replaced == {"ours": 7.0}
    assert sum("not measured this time: peer" in line for line in said) == 2
    partial = json.loads((tmp_path / "partial" / "speed.json").read_text())["figures"]
    assert [each["measured"] for each in partial] == [3.0, None]
