"""Hypothesis without chance or clock: every run tries the same cases, and no case has a time limit. No tuning file of the user's."""

import os

import hypothesis

os.environ["WSGEMM_TUNE"] = "off"

hypothesis.settings.register_profile("wsgemm", derandomize=True, deadline=None, database=None, max_examples=150)
hypothesis.settings.load_profile("wsgemm")
