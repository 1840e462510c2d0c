"""Pages with text that this machine cannot draw: their scripts, and the packages with the fonts."""

from pathlib import Path

import pytest

from measure.completing.fonts import SCRIPTS, text_of, without_fonts
from record.content import encode
from record.http1 import Response

TEXTS = {
    "Chinese characters": "页面的文字是用中文写的",
    "Japanese": "このページはにほんごです",
    "Korean": "이페이지는한국어로되어있습니다",
    "emoji": "🎉",
    "Arabic": "هذه الصفحة مكتوبة بالعربية",
    "Hebrew": "הדף הזה כתוב בעברית",
    "Thai": "หน้านี้เขียนเป็นภาษาไทย",
    "Devanagari": "यह पृष्ठ हिन्दी में लिखा है",
    "Bengali": "এই পৃষ্ঠাটি বাংলায় লেখা",
    "Tamil": "இந்தப் பக்கம் தமிழில் உள்ளது",
    "Telugu": "ఈ పేజీ తెలుగులో ఉంది",
    "Georgian": "ეს გვერდი ქართულად არის",
    "Armenian": "Այս էջը հայերեն է",
    "Ethiopic": "ይህ ገጽ በአማርኛ የተጻፈ ነው",
    "Khmer": "ទំព័រនេះសរសេរជាភាសាខ្មែរ",
    "Burmese": "ဤစာမျက်နှာသည်မြန်မာဘာသာဖြစ်သည်",
}


def document(body: bytes, content_type: str = "text/html; charset=utf-8", **headers: str) -> Response:
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Response(200, "OK", (("content-type", content_type), *fields), body)


@pytest.fixture
def no_fonts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any font, from fontconfig's point of view."""
    settings = tmp_path / "fonts.conf"
    settings.write_text(f"<fontconfig><dir>{tmp_path}</dir><cachedir>{tmp_path}/cache</cachedir></fontconfig>")
    monkeypatch.setenv("FONTCONFIG_FILE", str(settings))


@pytest.mark.usefixtures("no_fonts")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_each_script_without_fonts_is_named(script: object) -> None:
    name = script.name  # type: ignore[attr-defined]
    undrawn = without_fonts([document(TEXTS[name].encode())])
    assert undrawn and name in [missing.name for missing in undrawn.scripts]


@pytest.mark.usefixtures("no_fonts")
def test_latin_a_few_letters_of_others_and_what_is_not_shown_need_none() -> None:
    page = "<title>" + TEXTS["Korean"] + "</title><script>x='" + TEXTS["Thai"] + "🎉'</script><p>Łódź, 中文"
    assert without_fonts([document(page.encode())]) is None


def test_a_script_with_fonts_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "fc-list"
    program.write_text('#!/bin/sh\ncase "$1" in :lang=zh-cn) echo "Noto Sans CJK SC";; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    page = document((TEXTS["Chinese characters"] + TEXTS["Japanese"]).encode())
    undrawn = without_fonts([page])
    assert undrawn and [script.name for script in undrawn.scripts] == ["Japanese"]


@pytest.mark.usefixtures("no_fonts")
def test_names_in_a_list_of_languages_are_one_line_with_their_share() -> None:
    page = f"<p>{'word ' * 5000}</p><p>{'ไทย' * 4}</p><p>{'עברית' * 2}</p>"
    assert str(without_fonts([document(page.encode())])) == (
        "films show boxes for 22 characters of its text (0.1 %), since this machine has no fonts for Hebrew, Thai; "
        "apt install fonts-noto-core"
    )
    assert "of its text (less than 0.1 %)" in str(without_fonts([document((page + "word " * 9000).encode())]))


@pytest.mark.parametrize(
    "page",
    [
        document("<meta charset=gb2312><p>中文&#30340;".encode("gb2312"), "text/html"),
        document("<p>中文的".encode("big5", "ignore") + b"&#30340;", "text/html; charset=big5"),
        document("中文的".encode(), "text/html; charset=no-such"),
        document(encode("中文的".encode(), "gzip"), content_encoding="gzip"),
    ],
)
def test_text_is_read_in_the_encoding_of_its_document(page: Response) -> None:
    assert "中文的" in text_of(page)
