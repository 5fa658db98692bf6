"""The model hub as a source of model files."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.models.catalogue import ModelSpec
from course_utils.models.transfer import PATIENCE, STALL, SourceFailed, first_line, within


@dataclass(frozen=True)
class Hub:
    """The model hub, or any server that speaks its language (HF_ENDPOINT, or `endpoint` here).

    `huggingface_hub` finds the address and describes the file. The bytes are then read with range
    requests, because the library's own download begins at zero after the program was killed.

    >>> next(Hub().stream(spec("qwen2.5-coder-0.5b"), 0, Path("."), print))[:4]  # doctest: +SKIP
    b'GGUF'
    """

    endpoint: str | None = None
    patience: float = PATIENCE
    stall: float = STALL

    @property
    def name(self) -> str:
        from huggingface_hub import constants

        return f"model hub {self.endpoint or constants.ENDPOINT}"

    def extra_bytes(self, spec: ModelSpec) -> int:
        return 0

    def stream(
        self, spec: ModelSpec, offset: int, folder: Path, arriving: Callable[[int], None]
    ) -> Iterator[bytes]:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.errors import HTTPError

        url = hf_hub_url(
            spec.hub_repo, spec.file, revision=spec.hub_revision, endpoint=self.endpoint
        )
        answered = False
        try:
            self._check_announced(spec, url)
            answered = True
            yield from self._read(url, offset)
        except (HTTPError, OSError, ValueError) as error:
            raise SourceFailed(first_line(error), broken_off=answered) from error

    def _check_announced(self, spec: ModelSpec, url: str) -> None:
        """Ask what is there, with a time limit, and refuse another file before reading it."""
        from huggingface_hub import get_hf_file_metadata

        # The files are public; without a token an expired one of the user cannot get in the way.
        # The client's own limit is longer, only so that it ends at all after we gave up on it.
        found = within(
            self.patience,
            lambda: get_hf_file_metadata(
                url, token=False, timeout=2 * self.patience, endpoint=self.endpoint
            ),
        )
        if found.size is not None and found.size != spec.bytes:
            raise SourceFailed(f"the file there has {found.size:,} bytes, not {spec.bytes:,}")
        # For large files the hub's ETag is their SHA-256; other servers may send anything.
        etag = found.etag or ""
        if re.fullmatch(r"[0-9a-f]{64}", etag) and etag != spec.sha256:
            raise SourceFailed(f"the file there has the SHA-256 {etag}, not {spec.sha256}")

    def _read(self, url: str, offset: int) -> Iterator[bytes]:
        from huggingface_hub import get_session
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

        headers = build_hf_headers(token=False) | {"Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        with get_session().stream(
            "GET", url, headers=headers, timeout=self.stall, follow_redirects=True
        ) as response:
            hf_raise_for_status(response)
            # A server that ignores the range sends the file from its beginning.
            skip = offset if response.status_code == 200 else 0
            # In the pieces that arrive: a fixed size would lose the last one when the line breaks.
            for chunk in response.iter_bytes():
                yield chunk[skip:]
                skip -= min(skip, len(chunk))
