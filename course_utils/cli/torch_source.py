"""Where torch comes from: always a build for the CPU, never the much larger one for GPUs.

On macOS and Windows the package index itself holds CPU builds. On Linux they are in an index of
the PyTorch project; where that cannot be reached, the plain package is taken only if pip's own
dry run shows that it is a CPU build. Standard library only.
"""

import sys
import urllib.error
import urllib.request

from course_utils.errors import CourseError

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
GPU_PREFIXES = ("nvidia-", "triton", "cuda-", "pytorch-triton")
PATIENCE = 5  # seconds


def torch_arguments(version: str, dry_run, platform: str = sys.platform, reachable=None) -> list:
    """The pip arguments that install the CPU build of that torch version.

    `dry_run(requirement)` returns pip's installation report (a dict), or None if pip failed;
    `reachable(url)` says whether an index answers. Raises CourseError where no CPU build is
    to be had.

    >>> torch_arguments("2.13.0", dry_run=None, platform="darwin")
    ['torch==2.13.0']
    """
    requirement = f"torch=={version}"
    if not platform.startswith("linux"):
        return [requirement]
    if (reachable or answers)(f"{CPU_INDEX}/torch/"):
        return ["--index-url", CPU_INDEX, "--no-deps", requirement]
    report = dry_run(requirement)
    if report is not None and is_cpu_build(report):
        return [requirement]
    found = "found no such package" if report is None else "offers a build for GPUs"
    raise CourseError(
        f"The index of CPU builds, {CPU_INDEX}, does not answer, and the default index {found} "
        f"({requirement}). Make that index reachable and try again; nothing was installed."
    )


def is_cpu_build(report: dict) -> bool:
    """Whether pip's report (`pip install --dry-run --report`) would install a CPU build of torch.

    A build says so in its version (`2.13.0+cpu`, `2.13.0+cu128`); one without such a mark is for
    the CPU if it brings none of NVIDIA's libraries along.
    """
    packages = {
        item["metadata"]["name"].lower().replace("_", "-"): item["metadata"]["version"]
        for item in report["install"]
    }
    if "torch" not in packages:
        return False
    mark = packages["torch"].partition("+")[2]
    if mark:
        return mark.startswith("cpu")
    return not any(name.startswith(GPU_PREFIXES) for name in packages)


def answers(url: str) -> bool:
    """Whether the address answers within five seconds."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE):
            return True
    except (OSError, urllib.error.URLError, ValueError):
        return False
