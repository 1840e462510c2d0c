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

/// The size of the film, which shows the top left part of the screen.
pub const FILM: (u16, u16) = (320, 240);

/// Whatever takes longer than this will not happen at all, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A display of a test's own, by Xvfb.
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

/// When something was drawn, by the display server's clock: at some time between these two (µs).
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from_us: u64,
    pub to_us: u64,
}

impl Span {
    /// Whether the server may have drawn at `at_us`, given that its clock counts whole ms.
    pub fn has(&self, at_us: u64) -> bool {
        (self.from_us.saturating_sub(1_000)..=self.to_us + 1_000).contains(&at_us)
    }
}

/// A client that draws in a window at the top left. The window is white at first.
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

    /// Ask the server to draw a rectangle; does not wait until it has done so.
    pub fn ask(&self, colour: u32, x: i16, y: i16, width: u16, height: u16) {
        self.connection.change_gc(self.context, &ChangeGCAux::new().foreground(colour)).unwrap();
        let rectangle = Rectangle { x, y, width, height };
        self.connection.poly_fill_rectangle(self.window, self.context, &[rectangle]).unwrap();
    }

    /// Wait until the server has drawn everything, and has written the events of these drawings to all clients.
    pub fn finish(&self) {
        // The server writes to one client after the other. So when its first answer is here, it may still have to
        // write the recorder's events.
        for _ in 0..2 {
            self.connection.get_input_focus().unwrap().reply().unwrap();
        }
    }

    /// Draw a rectangle, and wait until that is done; returns when it was drawn.
    pub fn draw(&self, colour: u32, x: i16, y: i16, width: u16, height: u16) -> Span {
        // The server may use a clock that the kernel sets only at its ticks.
        let from_us = time_us(ClockId::CLOCK_MONOTONIC_COARSE).unwrap();
        self.ask(colour, x, y, width, height);
        self.finish();
        Span { from_us, to_us: now_us() }
    }

    /// The pixels of the part of the screen that is filmed, as they are now.
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

/// A recorder at work.
pub struct Recording {
    process: Child,
    stderr: ChildStderr,
    pub log: PathBuf,
}

impl Recording {
    /// Start a recorder, and wait until it has stored the first picture.
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

    /// Wait until the recorder has done all its work, and waits for the next drawing. Then it sleeps in a system call
    /// whose second argument is 3: it polls the display's descriptor, and two that make it stop.
    pub fn until_it_waits(&self) {
        let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", self.process.id()));
        let limit = Instant::now() + LIMIT;
        loop {
            // Its state comes first: a process that an event has woken no longer sleeps, but the kernel still shows its
            // system call until a processor runs it.
            let stat = read("stat").unwrap();
            let Ok(call) = read("syscall") else {
                // The kernel may lack this file, or not let us read it.
                return sleep(Duration::from_millis(200));
            };
            let (_, state) = stat.rsplit_once(')').unwrap();
            if state.trim_start().starts_with('S') && call.split_whitespace().nth(2) == Some("0x3") {
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

    /// Wait until the recorder has ended; returns its exit status, and its output on standard error.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let mut text = String::new();
        // The recorder closes its standard error when it ends.
        let mut polled = [PollFd::new(self.stderr.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut polled, PollTimeout::try_from(LIMIT).unwrap()), Ok(1), "the recorder goes on");
        self.stderr.read_to_string(&mut text).unwrap();
        (self.process.wait().unwrap(), text)
    }

    /// Stop the recorder; returns the film.
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
    /// The first record is of the screen as it was before any drawing.
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

    /// The number with this name in the account.
    pub fn number(&self, name: &str) -> u64 {
        let (_, after) = self.account.split_once(&format!("\"{name}\": ")).unwrap();
        after.split([',', '}']).next().unwrap().parse().unwrap()
    }

    /// Assert that the last picture is the painter's screen, and that the numbers of the account are consistent.
    pub fn check(&self, painter: &Painter) {
        assert!(self.pictures.last() == Some(&painter.screen()), "the last picture is not the screen");
        assert_eq!(self.number("missed_pixels"), 0);
        assert_eq!(self.number("pictures"), self.records.len() as u64);
        let shown = self.records.len() as u64 - 1 + self.number("unchanged");
        let merged = self.number("drawn_over") + self.number("thinned_out");
        assert_eq!(self.number("drawings"), shown + merged, "{}", self.account);
    }
}
