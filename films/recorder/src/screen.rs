//! The display: events of its drawings, and pictures of it.

use std::env;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::time::ClockId;
use nix::unistd::Pid;
use x11rb::connection::{Connection, RequestConnection, SequenceNumber};
use x11rb::protocol::Event;
use x11rb::protocol::damage::{self, ConnectionExt as _, ReportLevel};
use x11rb::protocol::shm::{self, ConnectionExt as _};
use x11rb::protocol::xfixes::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{ImageFormat, ImageOrder, Rectangle, Screen as Root, Setup, VisualClass};
use x11rb::rust_connection::RustConnection;

use crate::area::Area;
use crate::clock::{monotonic_us, time_us};
use crate::error::{Attempt, Error, Result};
use crate::memory::SharedPixels;

/// The event that something was drawn.
#[derive(Clone, Copy, Debug)]
pub struct Drawing {
    pub area: Area,
    /// The time of the drawing, by the server's clock: its lowest 32 bits.
    pub server_ms: u32,
    /// The number of our last request that the server had carried out by then.
    pub sequence: SequenceNumber,
}

/// A picture of a part of the screen, as it was fetched.
#[derive(Clone, Copy)]
pub struct Fetched<'a> {
    pub area: Area,
    /// The pixels, row by row; each is blue, green, red and an unused byte.
    pub pixels: &'a [u32],
}

impl<'a> Fetched<'a> {
    /// The part of row `y` that is within `area`; both are inside the picture.
    #[must_use]
    pub fn row(&self, y: u16, area: Area) -> &'a [u32] {
        let start =
            usize::from(y - self.area.top) * self.area.width() + usize::from(area.left - self.area.left);
        &self.pixels[start..][..area.width()]
    }
}

pub struct Screen {
    connection: RustConnection,
    /// The display's name in errors.
    name: String,
    root: u32,
    segment: u32,
    pixels: SharedPixels,
    /// The clock that counts how long the display server has run on a processor; none if its process cannot be seen
    /// from here.
    server_clock: Option<ClockId>,
}

impl Screen {
    /// Connect to DISPLAY; `film` is the part of it that will be filmed.
    pub fn open(film: Area) -> Result<Self> {
        let display = env::var("DISPLAY").unwrap_or_default();
        if display.is_empty() {
            return Err(Error::new("DISPLAY is not set; set it to the display to film"));
        }
        let name = format!("the display {display}");
        let (connection, number) = x11rb::connect(Some(&display)).attempt(|| format!("connect to {name}"))?;
        let root = &connection.setup().roots[number];
        check_extensions(&connection, &name)?;
        check_pixels(connection.setup(), root, &name)?;
        let screen = Area::whole(root.width_in_pixels, root.height_in_pixels);
        if !screen.contains(film) {
            return Err(Error::new(format!(
                "{name} has {}x{} pixels, fewer than a film of {}x{} shows; give it a larger screen",
                screen.right, screen.bottom, film.right, film.bottom
            )));
        }
        let root = root.root;
        let (pixels, descriptor) = SharedPixels::new(film.pixels())?;
        let segment = connection.generate_id().attempt(|| format!("use {name}"))?;
        // A server on another machine refuses this.
        let attached =
            connection.shm_attach_fd(segment, descriptor, false).map(|cookie| cookie.check().is_ok());
        if !attached.unwrap_or(false) {
            return Err(lacks(&name, "MIT-SHM descriptors", (1, 2)));
        }
        let server_clock = server_clock(&connection);
        Ok(Self { connection, name, root, segment, pixels, server_clock })
    }

    /// Get an event for each drawing to any window from now on. The first event is of the whole screen, and comes from
    /// this request itself.
    pub fn listen(&self) -> Result<()> {
        let attempt = || format!("listen to drawings on {}", self.name);
        let damage = self.connection.generate_id().attempt(attempt)?;
        // Raw events: otherwise the server would keep an account of the damaged areas, which we would have to reset.
        let level = ReportLevel::RAW_RECTANGLES;
        let cookie = self.connection.damage_create(damage, self.root, level).attempt(attempt)?;
        cookie.check().attempt(attempt)
    }

    /// The descriptor that becomes readable when there are events.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.connection.stream().as_fd()
    }

    /// The next drawing whose event has come.
    pub fn next_drawing(&self) -> Result<Option<Drawing>> {
        let attempt = || format!("read the events of {}", self.name);
        while let Some((event, sequence)) =
            self.connection.poll_for_raw_event_with_sequence().attempt(attempt)?
        {
            if let Event::DamageNotify(notify) = self.connection.parse_event(&event).attempt(attempt)? {
                return Ok(Some(Drawing { area: area(notify.area), server_ms: notify.timestamp, sequence }));
            }
        }
        Ok(None)
    }

    /// Fetch the picture of an area. Returns the request's sequence number, and for how long the server ran for it
    /// (µs).
    ///
    /// The server carries out one request after the other, so the picture shows no drawing in part, except drawings
    /// that extend beyond the area. It shows all drawings with lower sequence numbers, whose events have all come by
    /// now, and no others.
    pub fn fetch(&mut self, area: Area) -> Result<(SequenceNumber, u64)> {
        let attempt = || format!("fetch a picture of {}", self.name);
        let (began_us, server_us) = (monotonic_us(), self.server_us());
        let cookie = self
            .connection
            .shm_get_image(
                self.root,
                area.left as i16,
                area.top as i16,
                area.width() as u16,
                area.height() as u16,
                !0,
                ImageFormat::Z_PIXMAP.into(),
                self.segment,
                0,
            )
            .attempt(attempt)?;
        let sequence = cookie.sequence_number();
        cookie.reply().attempt(attempt)?;
        let waited_us = monotonic_us() - began_us;
        let ran_us = server_us.zip(self.server_us()).map(|(before, after)| after.saturating_sub(before));
        Ok((sequence, ran_us.unwrap_or(waited_us).min(waited_us)))
    }

    /// The picture that was fetched last; `area` must be the area of which it was fetched.
    #[must_use]
    pub fn fetched(&self, area: Area) -> Fetched<'_> {
        Fetched { area, pixels: &self.pixels.get()[..area.pixels()] }
    }

    fn server_us(&self) -> Option<u64> {
        self.server_clock.and_then(time_us)
    }
}

fn area(rectangle: Rectangle) -> Area {
    let edge =
        |start: i16, length: u16| (i32::from(start) + i32::from(length)).clamp(0, u16::MAX.into()) as u16;
    Area {
        left: edge(rectangle.x, 0),
        top: edge(rectangle.y, 0),
        right: edge(rectangle.x, rectangle.width),
        bottom: edge(rectangle.y, rectangle.height),
    }
}

fn lacks(name: &str, what: &str, (major, minor): (u32, u32)) -> Error {
    Error::new(format!("{name} has no {what} ({major}.{minor}); films need them"))
}

/// Refuse a server that lacks an extension, or has a version that is too old. (A client must ask for the version of an
/// extension before it uses it.)
fn check_extensions(connection: &RustConnection, name: &str) -> Result<()> {
    let has = |extension| connection.extension_information(extension).ok().flatten().is_some();
    let attempt = || format!("ask {name} for its extensions");
    let mut xfixes = None;
    if has(xfixes::X11_EXTENSION_NAME) {
        let reply = connection.xfixes_query_version(5, 0).attempt(attempt)?.reply().attempt(attempt)?;
        xfixes = Some((reply.major_version, reply.minor_version));
    }
    let mut damage = None;
    if has(damage::X11_EXTENSION_NAME) {
        let reply = connection.damage_query_version(1, 1).attempt(attempt)?.reply().attempt(attempt)?;
        damage = Some((reply.major_version, reply.minor_version));
    }
    let mut shm = None;
    if has(shm::X11_EXTENSION_NAME) {
        let reply = connection.shm_query_version().attempt(attempt)?.reply().attempt(attempt)?;
        shm = Some((reply.major_version.into(), reply.minor_version.into()));
    }
    let needs =
        [("XFIXES", xfixes, (1, 0)), ("DAMAGE events", damage, (1, 1)), ("MIT-SHM descriptors", shm, (1, 2))];
    match needs.into_iter().find(|(_, version, least)| version.is_none_or(|version| version < *least)) {
        Some((what, _, least)) => Err(lacks(name, what, least)),
        None => Ok(()),
    }
}

/// Refuse a display whose pixels are not 4 bytes: blue, green, red, and an unused one.
fn check_pixels(setup: &Setup, root: &Root, name: &str) -> Result<()> {
    let visual = root.allowed_depths.iter().flat_map(|depth| &depth.visuals);
    let is_true_colour = visual.into_iter().any(|visual| {
        visual.visual_id == root.root_visual
            && visual.class == VisualClass::TRUE_COLOR
            && (visual.red_mask, visual.green_mask, visual.blue_mask) == (0xff_0000, 0xff00, 0xff)
    });
    let has_4_bytes =
        setup.pixmap_formats.iter().any(|format| format.depth == 24 && format.bits_per_pixel == 32);
    let is_little = setup.image_byte_order == ImageOrder::LSB_FIRST;
    if root.root_depth == 24 && is_true_colour && has_4_bytes && is_little {
        return Ok(());
    }
    Err(Error::new(format!(
        "{name} has pixels of another kind than blue, green, red and an unused byte (TrueColor, depth 24); films need those"
    )))
}

/// The clock of the processor time of the process at the other end of the connection.
fn server_clock(connection: &RustConnection) -> Option<ClockId> {
    let pid = getsockopt(connection.stream(), PeerCredentials).ok()?.pid();
    if pid > 0 { ClockId::pid_cpu_clock_id(Pid::from_raw(pid)).ok() } else { None }
}
