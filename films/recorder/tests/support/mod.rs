//! A display, somebody who draws on it, and a recorder that films it.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use film_recorder::clock::time_us;
use film_recorder::log::{Entry, Reader, Record};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::time::ClockId;
use nix::unistd::Pid;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ChangeGCAux, ConnectionExt as _, CreateGCAux, CreateWindowAux, ImageFormat, Rectangle, WindowClass,
};
use x11rb::rust_connection::RustConnection;

pub const SCREEN: (u16, u16) = (640, 480);

/// The part that is filmed, and the window there.
pub const FILM: (u16, u16) = (320, 240);

/// A machine takes longer only if it does not come to it at all.
const LIMIT: Duration = Duration::from_secs(60);

/// An Xvfb of its own.
pub struct Display {
    server: Child,
    pub name: String,
}

impl Display {
    pub fn new() -> Self {
        Self::with(&["-screen", "0", &format!("{}x{}x24", SCREEN.0, SCREEN.1)])
    }

    pub fn with(options: &[&str]) -> Self {
        let installed = env::var_os("EYELEVEL_CACHE").map(|cache| PathBuf::from(cache).join("bin/Xvfb"));
        let program = installed.filter(|program| program.exists()).unwrap_or_else(|| "Xvfb".into());
        let mut server = Command::new(program)
            .args(["-displayfd", "1", "-noreset", "-nolisten", "tcp"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb is installed");
        let mut number = String::new();
        let written = BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut number);
        assert!(written.unwrap() > 1, "Xvfb has ended");
        Self { server, name: format!(":{}", number.trim()) }
    }

    pub fn end(&mut self) {
        let _ = kill(Pid::from_raw(self.server.id() as i32), Signal::SIGTERM);
        let _ = self.server.wait();
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.end();
    }
}

/// When something was drawn (µs): the display server's clock was in between.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from_us: u64,
    pub to_us: u64,
}

impl Span {
    /// Whether a time of the server, which has whole ms, may be of that moment.
    pub fn has(&self, at_us: u64) -> bool {
        (self.from_us.saturating_sub(1_000)..=self.to_us + 1_000).contains(&at_us)
    }
}

/// Draws in a window at the top left, which is white first.
pub struct Painter {
    connection: RustConnection,
    root: u32,
    window: u32,
    context: u32,
}

impl Painter {
    pub fn new(display: &Display) -> Self {
        let (connection, number) = x11rb::connect(Some(&display.name)).unwrap();
        let root = connection.setup().roots[number].root;
        let (window, context) = (connection.generate_id().unwrap(), connection.generate_id().unwrap());
        let options = CreateWindowAux::new().override_redirect(1).background_pixel(0xff_ffff);
        let (width, height) = SCREEN;
        let kind = WindowClass::INPUT_OUTPUT;
        connection.create_window(0, window, root, 0, 0, width, height, 0, kind, 0, &options).unwrap();
        connection.map_window(window).unwrap();
        connection.create_gc(context, window, &CreateGCAux::new()).unwrap();
        let painter = Self { connection, root, window, context };
        painter.finish();
        painter
    }

    /// Ask for a rectangle, which the server draws some time.
    pub fn ask(&self, colour: u32, x: i16, y: i16, width: u16, height: u16) {
        self.connection.change_gc(self.context, &ChangeGCAux::new().foreground(colour)).unwrap();
        let rectangle = Rectangle { x, y, width, height };
        self.connection.poly_fill_rectangle(self.window, self.context, &[rectangle]).unwrap();
    }

    /// Wait until the server has drawn everything, and has written the events of it.
    pub fn finish(&self) {
        // It writes to one client after the other, so with the first answer the recorder's events may not be there yet.
        for _ in 0..2 {
            self.connection.get_input_focus().unwrap().reply().unwrap();
        }
    }

    /// Draw a rectangle.
    pub fn draw(&self, colour: u32, x: i16, y: i16, width: u16, height: u16) -> Span {
        // The server may use a clock that the kernel sets only at its ticks.
        let from_us = time_us(ClockId::CLOCK_MONOTONIC_COARSE).unwrap();
        self.ask(colour, x, y, width, height);
        self.finish();
        Span { from_us, to_us: now_us() }
    }

    /// The part of the screen that is filmed, as it is now.
    pub fn screen(&self) -> Vec<[u8; 4]> {
        let (width, height) = FILM;
        let cookie = self.connection.get_image(ImageFormat::Z_PIXMAP, self.root, 0, 0, width, height, !0);
        let pixels = cookie.unwrap().reply().unwrap().data;
        pixels.chunks_exact(4).map(|pixel| [pixel[0], pixel[1], pixel[2], 0]).collect()
    }
}

pub fn now_us() -> u64 {
    time_us(ClockId::CLOCK_MONOTONIC).unwrap()
}

pub fn recorder() -> Command {
    Command::new(env!("CARGO_BIN_EXE_film-recorder"))
}

/// A recorder that records.
pub struct Recording {
    process: Child,
    stderr: ChildStderr,
    pub log: PathBuf,
}

impl Recording {
    /// Start one; it has stored the first picture.
    pub fn start(display: &Display, log: &Path) -> Self {
        let mut process = recorder()
            .args(["record", "--size", &format!("{}x{}", FILM.0, FILM.1)])
            .arg(log)
            .env("DISPLAY", &display.name)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = process.stderr.take().unwrap();
        let mut text = [0; 256];
        let length = stderr.read(&mut text).unwrap();
        assert_eq!(String::from_utf8_lossy(&text[..length]), "Press [q] to stop\n");
        Self { process, stderr, log: log.to_owned() }
    }

    /// Wait until it has done what it had to do: it waits for drawings, with two other descriptors for its end. As long as
    /// it runs, or has to, or waits for the display, there is another text.
    pub fn until_it_waits(&self) {
        let file = format!("/proc/{}/syscall", self.process.id());
        let limit = Instant::now() + LIMIT;
        loop {
            let Ok(call) = fs::read_to_string(&file) else {
                // The kernel may not say it.
                return sleep(Duration::from_millis(200));
            };
            if call.split_whitespace().nth(2) == Some("0x3") {
                return;
            }
            assert!(Instant::now() < limit, "the recorder never waits");
            sleep(Duration::from_millis(1));
        }
    }

    pub fn say(&mut self, text: &str) {
        self.process.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub fn close_stdin(&mut self) {
        drop(self.process.stdin.take());
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).unwrap();
    }

    /// Wait for its end; gives what it has said, too.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let mut text = String::new();
        // Its standard error ends with it.
        let mut polled = [PollFd::new(self.stderr.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut polled, PollTimeout::try_from(LIMIT).unwrap()), Ok(1), "the recorder goes on");
        self.stderr.read_to_string(&mut text).unwrap();
        (self.process.wait().unwrap(), text)
    }

    /// Stop it; gives the film.
    pub fn stop(mut self) -> Film {
        let log = self.log.clone();
        self.say("q");
        let (status, text) = self.ended();
        assert!(status.success() && text.is_empty(), "{status}: {text}");
        Film::read(&log)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A film, read from its log.
#[derive(Debug)]
pub struct Film {
    /// The first one is of what there was before.
    pub records: Vec<Record>,
    pub pictures: Vec<Vec<[u8; 4]>>,
    pub ended_us: u64,
    pub account: String,
}

impl Film {
    pub fn read(log: &Path) -> Self {
        let mut reader = Reader::new(File::open(log).unwrap(), &log.display().to_string()).unwrap();
        assert_eq!((reader.head().width, reader.head().height), FILM);
        let (mut records, mut pictures) = (Vec::new(), Vec::new());
        loop {
            match reader.next_entry().unwrap() {
                Entry::Picture(record) => {
                    records.push(record);
                    pictures.push(reader.picture().to_vec());
                }
                Entry::End { at_us: ended_us, account } => {
                    return Self { records, pictures, ended_us, account };
                }
            }
        }
    }

    /// A number of the account.
    pub fn number(&self, name: &str) -> u64 {
        let (_, after) = self.account.split_once(&format!("\"{name}\": ")).unwrap();
        after.split([',', '}']).next().unwrap().parse().unwrap()
    }

    /// The film is that of the screen, and its account fits.
    pub fn check(&self, painter: &Painter) {
        assert!(self.pictures.last() == Some(&painter.screen()), "the last picture is not the screen");
        assert_eq!(self.number("missed_pixels"), 0);
        assert_eq!(self.number("pictures"), self.records.len() as u64);
        let shown = self.records.len() as u64 - 1 + self.number("unchanged");
        let merged = self.number("drawn_over") + self.number("thinned_out");
        assert_eq!(self.number("drawings"), shown + merged, "{}", self.account);
    }
}
