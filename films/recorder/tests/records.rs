//! The film of a display shows everything that is drawn on it.

mod support;

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use film_recorder::area::Area;
use nix::sys::signal::Signal;

use support::{Display, FILM, Painter, Recording, SCREEN, now_us, recorder};

/// The path of a log for one test.
fn log(test: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.changes"))
}

fn blue(number: u32) -> [u8; 4] {
    [number as u8, 0, 0, 0]
}

#[test]
fn every_drawing_that_stands_has_its_picture_at_its_time() {
    let display = Display::new();
    let painter = Painter::new(&display);
    let before = painter.screen();
    let recording = Recording::start(&display, &log("stands"));
    let mut drawings = Vec::new();
    for number in 0..40 {
        let (x, y, width, height) = (number as i16 * 3, 7, 20 + number as u16, 30);
        drawings.push((
            painter.draw(number, x, y, width, height),
            Area { left: x as u16, top: 7, right: x as u16 + width, bottom: 37 },
        ));
        sleep(Duration::from_millis(20));
        // On a busy machine the recorder may need longer than that.
        recording.until_it_waits();
    }
    let film = recording.stop();
    film.check(&painter);
    assert!(film.pictures[0] == before);
    assert_eq!((film.records[0].area, film.records[0].drawings), (Area::whole(FILM.0, FILM.1), 0));
    assert_eq!(film.records.len(), 41, "{}", film.account);
    for (number, ((span, area), record)) in (0..).zip(drawings.iter().zip(&film.records[1..])) {
        assert_eq!((record.drawings, record.first_us), (1, record.last_us));
        assert!(span.has(record.first_us), "{span:?} {record:?}");
        assert!(area.contains(record.area));
        let picture = &film.pictures[number as usize + 1];
        assert_eq!(picture[7 * FILM.0 as usize + area.left as usize], blue(number));
    }
    assert!(film.records.windows(2).all(|pair| pair[0].last_us <= pair[1].first_us));
    assert!((film.records[40].last_us..=now_us()).contains(&film.ended_us));
}

#[test]
fn a_picture_can_be_read_as_soon_as_it_is_stored() {
    let display = Display::new();
    let painter = Painter::new(&display);
    let path = log("at_once");
    let recording = Recording::start(&display, &path);
    for number in 1..4 {
        let before = fs::metadata(&path).unwrap().len();
        painter.draw(number, 10, 10, 50, 50);
        recording.until_it_waits();
        assert!(fs::metadata(&path).unwrap().len() > before, "{number}");
    }
    recording.stop().check(&painter);
}

#[test]
fn only_pixels_that_change_are_stored() {
    let display = Display::new();
    let painter = Painter::new(&display);
    let recording = Recording::start(&display, &log("tight"));
    painter.draw(5, 50, 50, 100, 100);
    recording.until_it_waits();
    // A part of this rectangle has its colour already, and another part is outside the film.
    painter.draw(5, 100, 100, 500, 60);
    let film = recording.stop();
    film.check(&painter);
    let areas: Vec<_> = film.records[1..].iter().map(|record| record.area).collect();
    let right_of_it = Area { left: 100, top: 100, right: FILM.0, bottom: 160 };
    assert_eq!(areas, [Area { left: 50, top: 50, right: 150, bottom: 150 }, right_of_it]);
}

#[test]
fn a_drawing_that_changes_nothing_makes_no_record() {
    let display = Display::new();
    let painter = Painter::new(&display);
    let recording = Recording::start(&display, &log("unchanged"));
    painter.draw(9, 10, 10, 50, 50);
    for _ in 0..20 {
        recording.until_it_waits();
        painter.draw(9, 10, 10, 50, 50);
    }
    // The unused byte is not part of the colour.
    recording.until_it_waits();
    painter.draw(0xff00_0009, 10, 10, 50, 50);
    // These two rectangles are outside the film.
    painter.draw(7, FILM.0 as i16, 0, 50, 50);
    painter.draw(7, 0, FILM.1 as i16, 50, 50);
    recording.until_it_waits();
    let film = recording.stop();
    film.check(&painter);
    assert_eq!((film.records.len(), film.number("drawings"), film.number("unchanged")), (2, 22, 21));
}

#[test]
fn a_storm_of_drawings_is_thinned_out() {
    let display = Display::new();
    let painter = Painter::new(&display);
    let began_us = now_us();
    let recording = Recording::start(&display, &log("storm"));
    let mut drawings = 0;
    while now_us() - began_us < 4_000_000 {
        painter.draw(drawings, 0, 0, 100, 100);
        drawings += 1;
        sleep(Duration::from_millis(4));
    }
    let film = recording.stop();
    let took_us = now_us() - began_us;
    film.check(&painter);
    assert_eq!(film.number("drawings"), drawings.into());
    // The bounds do not apply to the last picture.
    let most = 60 + 30 * took_us / 1_000_000 + 2;
    assert!(film.number("pictures") <= most, "{most} {}", film.account);
    // A busy machine may draw so seldom that there is nothing to thin out.
    assert!(film.number("thinned_out") > 0 || u64::from(drawings) < most, "{}", film.account);
    // If several drawings share a picture, it has the times of the first and the last of them.
    assert!(film.records.iter().all(|record| record.drawings > 1 || record.first_us == record.last_us));
    assert!(film.records.iter().any(|record| record.first_us < record.last_us));
    let sum: u64 = film.records.iter().map(|record| u64::from(record.drawings)).sum();
    assert_eq!(sum + film.number("unchanged"), u64::from(drawings));
}

#[test]
fn no_picture_shows_half_of_a_drawing() {
    let display = Display::new();
    let painter = Painter::new(&display);
    painter.draw(0, 0, 0, SCREEN.0, SCREEN.1);
    let recording = Recording::start(&display, &log("halves"));
    for number in 0..500 {
        // The recorder may fetch the picture of this small drawing while the whole window is drawn.
        painter.ask(number, 100, 100, 10, 10);
        if number % 3 == 0 {
            painter.finish();
        }
        painter.ask(number + 1, 0, 0, SCREEN.0, SCREEN.1);
        if number % 7 == 0 {
            painter.finish();
            recording.until_it_waits();
        }
    }
    painter.finish();
    let film = recording.stop();
    film.check(&painter);
    assert!(film.number("pictures") > 20, "{}", film.account);
    // A small drawing has the colour that the window has already, so every picture has only one colour.
    for (number, picture) in film.pictures.iter().enumerate() {
        assert!(picture.iter().all(|colour| *colour == picture[0]), "picture {number}");
    }
}

#[test]
fn a_page_that_moves_at_the_end_has_no_missed_pixels() {
    let display = Display::new();
    let painter = Painter::new(&display);
    for turn in 0..5 {
        let mut recording = Recording::start(&display, &log("moves"));
        for number in 0..100 {
            painter.ask(number * 7 + turn, 0, 0, 200, 200);
        }
        recording.say("q");
        for number in 0..2000 {
            painter.ask(number * 7 + turn, 0, 0, 200, 200);
        }
        painter.finish();
        let path = recording.log.clone();
        assert!(recording.ended().0.success());
        assert_eq!(support::Film::read(&path).number("missed_pixels"), 0);
    }
}

#[test]
fn it_stops_at_q_at_the_end_of_standard_input_and_at_signals() {
    let display = Display::new();
    let painter = Painter::new(&display);
    type Stop = fn(&mut Recording);
    let stops: [(&str, Stop); 5] = [
        ("q", |recording| recording.say("q")),
        ("input", Recording::close_stdin),
        ("term", |recording| recording.signal(Signal::SIGTERM)),
        ("int", |recording| recording.signal(Signal::SIGINT)),
        ("hup", |recording| recording.signal(Signal::SIGHUP)),
    ];
    for (name, stop) in stops {
        let mut recording = Recording::start(&display, &log(name));
        // Other commands of FFmpeg do not stop the recorder.
        recording.say("c?\n");
        let drawn = painter.draw(now_us() as u32, 0, 0, 9, 9);
        recording.until_it_waits();
        stop(&mut recording);
        let (path, (status, text)) = (recording.log.clone(), recording.ended());
        assert!(status.success() && text.is_empty(), "{name}: {status} {text}");
        let film = support::Film::read(&path);
        film.check(&painter);
        assert!(drawn.has(film.records[1].last_us), "{name}");
    }
}

/// The error of a recorder that cannot record.
fn refused(display: &str, size: &str) -> String {
    let mut command = recorder();
    command.args(["record", "--size", size]).arg(log("refused")).env("DISPLAY", display).stdin(Stdio::null());
    let Output { status, stderr, .. } = command.output().unwrap();
    assert_eq!(status.code(), Some(1));
    String::from_utf8(stderr).unwrap()
}

#[test]
fn a_display_that_cannot_be_filmed_is_refused_in_a_line() {
    let options = ["-screen", "0", "640x480x24"];
    for (extension, what) in [
        ("DAMAGE", "DAMAGE events (1.1)"),
        ("XFIXES", "XFIXES (1.0)"),
        ("MIT-SHM", "MIT-SHM descriptors (1.2)"),
    ] {
        let display = Display::with(&[&options[..], &["-extension", extension]].concat());
        let text = format!("film-recorder: the display {} has no {what}; films need them\n", display.name);
        assert_eq!(refused(&display.name, "320x240"), text);
    }
    let display = Display::with(&["-screen", "0", "640x480x16"]);
    let text = "has pixels of another kind than blue, green, red and an unused byte (TrueColor, depth 24); films need those";
    assert_eq!(
        refused(&display.name, "320x240"),
        format!("film-recorder: the display {} {text}\n", display.name)
    );
    let display = Display::new();
    let text = "has 640x480 pixels, fewer than a film of 640x481 shows; give it a larger screen";
    assert_eq!(
        refused(&display.name, "640x481"),
        format!("film-recorder: the display {} {text}\n", display.name)
    );
    assert_eq!(refused("", "9x9"), "film-recorder: DISPLAY is not set; set it to the display to film\n");
    let text = refused(":4000", "9x9");
    assert!(
        text.starts_with("film-recorder: cannot connect to the display :4000: ") && text.lines().count() == 1
    );
}

#[test]
fn a_film_whose_display_ends_is_not_whole() {
    let mut display = Display::new();
    let recording = Recording::start(&display, &log("ends"));
    recording.until_it_waits();
    display.end();
    let (path, (status, text)) = (recording.log.clone(), recording.ended());
    assert_eq!(status.code(), Some(1));
    let line = format!("film-recorder: cannot read the events of the display {}: ", display.name);
    assert!(text.starts_with(&line) && text.lines().count() == 1, "{text}");
    let Output { status, stdout, stderr } = recorder().arg("stream").arg(&path).output().unwrap();
    assert_eq!((status.code(), stdout.len()), (Some(1), 0));
    let size = fs::metadata(&path).unwrap().len();
    let line = format!("film-recorder: the log {} is not whole: it ends at byte {size}, ", path.display());
    let text = String::from_utf8(stderr).unwrap();
    assert!(text.starts_with(&line) && text.lines().count() == 1, "{text}");
}

#[test]
fn a_film_is_streamed_and_whoever_reads_it_may_stop() {
    let display = Display::new();
    let painter = Painter::new(&display);
    let recording = Recording::start(&display, &log("streamed"));
    for number in 0..5 {
        painter.draw(number, 0, 0, 200, 200);
        recording.until_it_waits();
    }
    let path = recording.log.clone();
    let film = recording.stop();
    // With --to-end, the last picture comes twice.
    for (options, more) in [(&["stream"][..], 0), (&["stream", "--to-end"], 1)] {
        let Output { status, stdout, stderr } = recorder().args(options).arg(&path).output().unwrap();
        assert!(status.success() && stderr.is_empty());
        let pixels = 4 * usize::from(FILM.0) * usize::from(FILM.1) * (film.pictures.len() + more);
        assert!((pixels..pixels + 1000).contains(&stdout.len()));
        assert!(stdout.ends_with(film.pictures.last().unwrap().as_flattened()));
    }

    let mut command = recorder();
    command.arg("stream").arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdout.take().unwrap().read_exact(&mut [0; 100]).unwrap();
    let Output { status, stderr, .. } = process.wait_with_output().unwrap();
    assert!(status.success() && stderr.is_empty(), "{status}");
}
