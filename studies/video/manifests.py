"""The files that players read before the segments of a video: a manifest of DASH, or playlists of HLS."""

from collections.abc import Mapping

from studies.video.media import FRAMES_PER_S, SEGMENT_S, SOUND_BPS, Track

DASH, HLS = "manifest.mpd", "main.m3u8"
HLS_TYPE = "application/vnd.apple.mpegurl"


def of(
    player: str, qualities: Mapping[str, int], pictures: Track, sound: Track, sound_name: str
) -> list[tuple[str, str, str]]:
    """The manifests for `player`: path, content type and text of each. `qualities`: name → bit/s."""
    if player == "dash":
        return [(DASH, "application/dash+xml", _dash(qualities, pictures, sound, sound_name))]
    media = [(f"{name}.m3u8", HLS_TYPE, _playlist(name, pictures)) for name in (*qualities, sound_name)]
    return [(HLS, HLS_TYPE, _hls(qualities, pictures, sound, sound_name)), *media]


def _dash(qualities: Mapping[str, int], pictures: Track, sound: Track, sound_name: str) -> str:
    seconds = SEGMENT_S * len(pictures.segments)
    files = (
        f'<SegmentTemplate timescale="1" duration="{SEGMENT_S}" startNumber="1" '
        'initialization="$RepresentationID$/begin.mp4" media="$RepresentationID$/$Number$.m4s"/>'
    )
    width, height = pictures.size or (0, 0)
    videos = "\n".join(
        f'<Representation id="{name}" bandwidth="{bps}" codecs="{pictures.codec}" width="{width}" height="{height}" '
        f'frameRate="{FRAMES_PER_S}"/>'
        for name, bps in qualities.items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="static"
  mediaPresentationDuration="PT{seconds}S" minBufferTime="PT{SEGMENT_S}S">
<Period start="PT0S">
<AdaptationSet contentType="video" mimeType="video/mp4" segmentAlignment="true" startWithSAP="1">
{files}
{videos}
</AdaptationSet>
<AdaptationSet contentType="audio" mimeType="audio/mp4" segmentAlignment="true" startWithSAP="1" lang="en">
{files}
<Representation id="{sound_name}" bandwidth="{SOUND_BPS}" codecs="{sound.codec}" audioSamplingRate="48000"/>
</AdaptationSet>
</Period>
</MPD>
"""


def _hls(qualities: Mapping[str, int], pictures: Track, sound: Track, sound_name: str) -> str:
    width, height = pictures.size or (0, 0)
    name = f'NAME="{sound_name}",DEFAULT=YES,AUTOSELECT=YES,URI="{sound_name}.m3u8"'
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", f'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="{sound_name}",{name}']
    for quality, bps in qualities.items():
        lines += [
            f'#EXT-X-STREAM-INF:BANDWIDTH={bps + SOUND_BPS},CODECS="{pictures.codec},{sound.codec}",'
            f'RESOLUTION={width}x{height},FRAME-RATE={FRAMES_PER_S},AUDIO="{sound_name}"',
            f"{quality}.m3u8",
        ]
    return "\n".join([*lines, ""])


def _playlist(name: str, pictures: Track) -> str:
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", f"#EXT-X-TARGETDURATION:{SEGMENT_S}", "#EXT-X-PLAYLIST-TYPE:VOD"]
    lines += [f'#EXT-X-MAP:URI="{name}/begin.mp4"']
    for number in range(1, len(pictures.segments) + 1):
        lines += [f"#EXTINF:{SEGMENT_S},", f"{name}/{number}.m4s"]
    return "\n".join([*lines, "#EXT-X-ENDLIST", ""])
