"""Pictures and sound of a video, in segments (CMAF, ISO/IEC 23000-19: fragmented MP4), and their padding.

The measurement is about the network, not the decoder. So pictures are small and encoded only once; the segments of each
quality are these pictures with noise in front, for as many bytes as the quality's rate requires. The noise is in a
`free` box between segments, which players of MP4 must accept and ignore (Media Source Extensions, ISO BMFF Byte Stream
Format, section 4). Noise in the pictures' own data (filler NAL units, SEI) would go through the decoder, and MP4
forbids filler NAL units.
"""

import hashlib
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from base.errors import EyelevelError
from base.places import tool
from base.processes import last_line_of

SEGMENT_S = 2
FRAMES_PER_S = 25
SOUND_BPS = 128_000
SMALL, TRUE = (256, 144), (1280, 720)
# A box begins with its length and its kind.
BOX_BYTES = 8

# Options that make the same bytes each time: one thread, and nothing about the program or the day in the file. A
# fragment begins with each group of pictures; there is no edit list, so that everything begins at 0.
ENCODE = ["-threads", "1", "-fflags", "+bitexact", "-flags", "+bitexact", "-map_metadata", "-1"]
INTO = ["-movflags", "+cmaf+empty_moov+default_base_moof+frag_keyframe", "-use_editlist", "0", "-f", "mp4", "pipe:1"]
# Groups of pictures are closed, and each is a segment.
H264 = ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-bf", "0", "-sc_threshold", "0"]
GROUP = FRAMES_PER_S * SEGMENT_S
H264 += ["-g", str(GROUP), "-keyint_min", str(GROUP)]
# The rate of small pictures is below the lowest rate of the ladder, the rate of true pictures below that of hd720,
# whatever the pictures show.
SMALL_RATE = ["-b:v", "120k", "-maxrate", "120k", "-bufsize", "120k"]
TRUE_RATE = ["-b:v", "4200k", "-maxrate", "4200k", "-bufsize", "2100k"]
# Opus has frames of 20 ms, so that segments of sound and of pictures end together; AAC does not.
OPUS = ["-c:a", "libopus", "-b:a", "96k", "-vbr", "off", "-frag_duration", str(SEGMENT_S * 1_000_000)]


@dataclass(frozen=True)
class Track:
    """Pictures or sound: the data that players read first (`ftyp`, `moov`), and segments of `SEGMENT_S` each. `codec`
    is in the form of RFC 6381; `size`: of pictures, in pixels."""

    codec: str
    beginning: bytes
    segments: tuple[bytes, ...]
    size: tuple[int, int] | None = None


def pictures(segments: int, *, is_true: bool = False) -> Track:
    """A moving test picture of this many segments: small, or, if `is_true`, of 1280x720 and noisy. Raises
    EyelevelError."""
    width, height = size = TRUE if is_true else SMALL
    source = f"testsrc2=size={width}x{height}:rate={FRAMES_PER_S}" + (",noise=alls=12:allf=t:all_seed=1" * is_true)
    rate = TRUE_RATE if is_true else SMALL_RATE
    beginning, fragments = _encoded(source, segments, [*H264, *rate])
    # Profile, constraints and level follow the version in the decoder's configuration.
    place = beginning.index(b"avcC") + 5
    return Track(f"avc1.{beginning[place : place + 3].hex()}", beginning, fragments, size)


def sound(segments: int) -> Track:
    """A tone of this many segments. Raises EyelevelError."""
    return Track("opus", *_encoded("sine=frequency=440:sample_rate=48000", segments, OPUS))


def padded(segment: bytes, bps: int, seed: str) -> bytes:
    """`segment` with noise from `seed` in front, so that it has the size for `bps`. Raises EyelevelError if it is
    larger already."""
    noise_bytes = bps * SEGMENT_S // 8 - len(segment) - BOX_BYTES
    if noise_bytes < 0:
        raise EyelevelError(f"the segment {seed} has {len(segment)} bytes, more than {bps} bit/s make of {SEGMENT_S} s")
    noise = hashlib.shake_128(seed.encode()).digest(noise_bytes)
    return struct.pack(">I4s", BOX_BYTES + noise_bytes, b"free") + noise + segment


def boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The boxes of an MP4 file: kind, and the whole box. Raises EyelevelError if the file was cut short."""
    place = 0
    while place < len(data):
        size, kind = struct.unpack_from(">I4s", data, place) if place + BOX_BYTES <= len(data) else (0, b"")
        if size < BOX_BYTES or place + size > len(data):
            raise EyelevelError("FFmpeg's output is not an MP4 file, or was cut short")
        yield kind, data[place : place + size]
        place += size


def _encoded(source: str, segments: int, codec: list[str]) -> tuple[bytes, tuple[bytes, ...]]:
    """FFmpeg's output for a generated `source`: the beginning, and the fragments."""
    seconds = segments * SEGMENT_S
    read = ["-nostdin", "-v", "error", "-f", "lavfi", "-i", source, "-t", str(seconds)]
    completed = subprocess.run([tool("ffmpeg"), *read, *ENCODE, *codec, *INTO], capture_output=True, check=False)
    if completed.returncode:
        fault = last_line_of(completed.stderr.decode(errors="replace"))
        raise EyelevelError(f"FFmpeg cannot encode the video: {fault}")
    in_file = list(boxes(completed.stdout))
    beginning = b"".join(box for kind, box in in_file if kind in (b"ftyp", b"moov"))
    parts = [box for kind, box in in_file if kind in (b"moof", b"mdat")]
    fragments = tuple(b"".join(pair) for pair in zip(parts[::2], parts[1::2], strict=True))
    # Opus ends some ms later, in a separate fragment.
    if not segments <= len(fragments) <= segments + 1:
        raise EyelevelError(f"FFmpeg made {len(fragments)} segments of {seconds} s, not {segments}")
    return beginning, fragments[:segments]
