//! Recording: waits for drawings, fetches pictures of them, and stores what has changed.

use std::fs::File;
use std::io::{Write, stderr};
use std::mem::take;
use std::path::Path;
use std::time::Duration;

use x11rb::connection::SequenceNumber;

use crate::area::Area;
use crate::bounds::{Bounds, Cost, QUIET_US};
use crate::clock::{from_server_ms, monotonic_and_epoch_us, monotonic_us, thread_us};
use crate::drawings::Drawings;
use crate::error::{Attempt, Result};
use crate::log::{Head, Record, Writer};
use crate::picture::Picture;
use crate::screen::Screen;
use crate::stop::Stop;

/// FFmpeg prints this when it records, and Browsertime waits for it.
const ANNOUNCEMENT: &[u8] = b"Press [q] to stop\n";

/// Film the display until it is time to stop.
pub fn record(width: u16, height: u16, path: &Path) -> Result<()> {
    let stop = Stop::watch()?;
    let mut recorder = Recorder::new(Screen::open(Area::whole(width, height))?, width, height, path)?;
    recorder.begin()?;
    // If standard error is closed, the film is still made.
    let _ = stderr().write_all(ANNOUNCEMENT);
    loop {
        recorder.gather(0)?;
        let wait = recorder.wait();
        let drawings = if wait.is_none() { Some(recorder.screen.descriptor()) } else { None };
        if stop.wait(drawings, wait)? {
            return recorder.end();
        }
        if wait == Some(Duration::ZERO) {
            recorder.take()?;
        }
    }
}

/// An account of a film. `drawings` counts all drawings, and each of them is also counted in exactly one of `pictures`,
/// `unchanged`, `drawn_over` and `thinned_out`. `pictures` also counts the first picture, which shows no drawing.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    drawings: u64,
    pictures: u64,
    /// Pictures that were fetched but not stored, since nothing had changed.
    unchanged: u64,
    /// Drawings that share a picture with later ones, since these came before the picture could be fetched.
    drawn_over: u64,
    /// Drawings that share a picture with others, since the bounds made the picture wait.
    thinned_out: u64,
    missed_pixels: usize,
    display_us: u64,
}

impl Account {
    fn json(&self) -> String {
        let Self { drawings, pictures, unchanged, drawn_over, thinned_out, missed_pixels, display_us } = self;
        let (recorder_ms, display_ms) = (thread_us() as f64 / 1e3, *display_us as f64 / 1e3);
        format!(
            "{{\"drawings\": {drawings}, \"pictures\": {pictures}, \"unchanged\": {unchanged}, \
             \"drawn_over\": {drawn_over}, \"thinned_out\": {thinned_out}, \"missed_pixels\": {missed_pixels}, \
             \"recorder_ms\": {recorder_ms:.1}, \"display_ms\": {display_ms:.1}}}"
        )
    }
}

struct Recorder {
    screen: Screen,
    whole: Area,
    picture: Picture,
    delta: Vec<[u8; 4]>,
    log: Writer<File>,
    log_name: String,
    bounds: Bounds,
    /// Drawings that the film does not show so far.
    pending: Drawings,
    /// How long nothing had been drawn before the first of the pending drawings.
    pause_us: u64,
    /// Whether the bounds make the picture of the pending drawings wait.
    is_waiting: bool,
    last_drawing_us: u64,
    /// How long this thread, and the display server on its behalf, had run in total by the last picture.
    run_us: u64,
    account: Account,
}

impl Recorder {
    fn new(screen: Screen, width: u16, height: u16, path: &Path) -> Result<Self> {
        let log_name = path.display().to_string();
        let (monotonic_us, epoch_us) = monotonic_and_epoch_us();
        let head = Head { width, height, monotonic_us, epoch_us };
        let log = File::create(path).and_then(|file| Writer::new(file, &head));
        let whole = Area::whole(width, height);
        Ok(Self {
            screen,
            whole,
            picture: Picture::new(whole),
            delta: Vec::new(),
            log: log.attempt(|| format!("write the log {log_name}"))?,
            log_name,
            bounds: Bounds::new(monotonic_us),
            pending: Drawings::default(),
            pause_us: 0,
            is_waiting: false,
            last_drawing_us: 0,
            run_us: 0,
            account: Account::default(),
        })
    }

    /// Store the first picture, of the whole screen.
    fn begin(&mut self) -> Result<()> {
        self.screen.listen()?;
        let sequence = self.fetch(self.whole)?;
        let now_us = monotonic_us();
        self.last_drawing_us = now_us;
        // These events are dropped: the picture shows all that was drawn until now, and one event comes from `listen`.
        self.gather(sequence)?;
        self.store(
            self.whole,
            self.whole,
            &Drawings { first_us: now_us, last_us: now_us, ..Drawings::default() },
        )
    }

    /// Read the events that have come. Returns the drawings whose sequence numbers are below `sequence`; the others
    /// become pending.
    fn gather(&mut self, sequence: SequenceNumber) -> Result<Drawings> {
        let mut earlier = Drawings::default();
        while let Some(drawing) = self.screen.next_drawing()? {
            let area = drawing.area.within(self.whole);
            if area.is_empty() {
                continue;
            }
            let now_us = monotonic_us();
            let at_us = from_server_ms(drawing.server_ms, now_us).clamp(self.last_drawing_us, now_us);
            let thinned_out = u32::from(self.is_waiting);
            let one = Drawings { area, count: 1, thinned_out, first_us: at_us, last_us: at_us };
            if drawing.sequence < sequence {
                earlier.add(&one);
            } else {
                if self.pending.is_empty() {
                    self.pause_us = at_us - self.last_drawing_us;
                }
                self.pending.add(&one);
            }
            self.last_drawing_us = at_us;
        }
        Ok(earlier)
    }

    /// How long the picture of the pending drawings has to wait; none if no drawing is pending.
    fn wait(&mut self) -> Option<Duration> {
        if self.pending.is_empty() {
            return None;
        }
        let wait_us = if self.pause_us < QUIET_US { self.bounds.wait_us(monotonic_us()) } else { 0 };
        self.is_waiting = wait_us > 0;
        Some(Duration::from_micros(wait_us))
    }

    /// Fetch a picture of the pending drawings, and store the pixels that have changed.
    fn take(&mut self) -> Result<()> {
        let mut drawings = take(&mut self.pending);
        let first_area = drawings.area;
        let mut area = first_area;
        loop {
            let sequence = self.fetch(area)?;
            drawings.add(&self.gather(sequence)?);
            if area.contains(drawings.area) {
                return self.show(area, &drawings);
            }
            // The picture shows only a part of a drawing. The next picture must show all of it, and will also show
            // everything that is pending now.
            drawings.add(&take(&mut self.pending));
            area = if area == first_area { drawings.area } else { self.whole };
        }
    }

    /// Fetch the last picture, and end the log. If pixels still differ from the film although no event says that they
    /// were drawn, the film has missed them.
    fn end(mut self) -> Result<()> {
        self.gather(0)?;
        self.is_waiting = false;
        let mut drawings = take(&mut self.pending);
        let sequence = self.fetch(self.whole)?;
        drawings.add(&self.gather(sequence)?);
        if !drawings.is_empty() {
            self.show(self.whole, &drawings)?;
        }
        self.account.missed_pixels = self.picture.differences(self.screen.fetched(self.whole));
        let attempt = || format!("write the log {}", self.log_name);
        self.log.end(monotonic_us(), &self.account.json()).attempt(attempt)
    }

    fn fetch(&mut self, area: Area) -> Result<SequenceNumber> {
        let (sequence, display_us) = self.screen.fetch(area)?;
        self.account.display_us += display_us;
        Ok(sequence)
    }

    /// Add `drawings` to the film. The picture that was fetched last, of `area`, shows them.
    fn show(&mut self, area: Area, drawings: &Drawings) -> Result<()> {
        self.account.drawings += u64::from(drawings.count);
        self.account.drawn_over += u64::from(drawings.drawn_over());
        self.account.thinned_out += u64::from(drawings.thinned_out);
        let changed = self.picture.changed(self.screen.fetched(area), drawings.area);
        if changed.is_empty() {
            self.account.unchanged += 1;
            self.pay(0, 0);
            return Ok(());
        }
        self.store(area, changed, drawings)
    }

    /// Store the differences inside `changed` of the picture that was fetched last, of `area`.
    fn store(&mut self, area: Area, changed: Area, drawings: &Drawings) -> Result<()> {
        self.picture.follow(self.screen.fetched(area), changed, &mut self.delta);
        let Drawings { first_us, last_us, count: drawings, .. } = *drawings;
        let record = Record { first_us, last_us, drawings, area: changed };
        let bytes =
            self.log.add(&record, &self.delta).attempt(|| format!("write the log {}", self.log_name))?;
        self.account.pictures += 1;
        self.pay(1, bytes as u64);
        Ok(())
    }

    fn pay(&mut self, pictures: u64, bytes: u64) {
        let run_us = thread_us() + self.account.display_us;
        let processor_us = run_us - self.run_us;
        self.run_us = run_us;
        self.bounds.take(Cost { pictures, processor_us, bytes }, monotonic_us());
    }
}
