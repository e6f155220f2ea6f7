"""The benchmark of growth itself works, in small: the past it writes is as the gateway would have
written it, every figure is there, and the books of both hold."""

import json
import os
from pathlib import Path

from bench_runs import ROOT, empty, run
