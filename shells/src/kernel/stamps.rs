//! Arrival times of packets at a TUN device, recorded by the kernel.
//!
//! When the processor sleeps, the kernel wakes the reader of a TUN device a few hundred microseconds late, and does not
//! report when a packet arrived. So the kernel runs our program for every packet (`TUNSETFILTEREBPF`). This program
//! writes the time to memory that this process shares. See bpf(2) and Documentation/bpf/standardization/.

use std::cell::Cell;
use std::io;
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::time::Nanos;

/// How many instants are kept until they are read: a power of two, and more than the packets in a device's queue.
const SLOTS: usize = 1 << 17;

// Constants of linux/bpf.h.
const MAP_CREATE: libc::c_long = 0;
const PROGRAM_LOAD: libc::c_long = 5;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_MAY_BE_SHARED: u32 = 1 << 10;
const PROGRAM_TYPE_SOCKET_FILTER: u32 = 1;
const HELPER_KTIME_GET_NS: i32 = 5;

nix::ioctl_read!(tun_set_filter, b'T', 225, libc::c_int);

/// The memory shared with the kernel.
#[repr(C)]
struct Board {
    /// The number of packets that have arrived so far.
    count: AtomicU64,
    /// The instant of packet n, at index n modulo the number of slots; 0 if it has not been written yet.
    instants: [AtomicU64; SLOTS],
}

/// When packets arrived at a device, in their order.
pub struct Stamps {
    board: NonNull<Board>,
    taken: Cell<u64>,
}

impl Stamps {
    /// Make the kernel record when packets arrive at this TUN device from now on.
    ///
    /// Fails if this process may not load programs into the kernel.
    pub fn attach(tun: BorrowedFd<'_>) -> io::Result<Self> {
        let map = create_map()?;
        let filter = load_program(&program(&map))?;
        let length = NonZeroUsize::new(size_of::<Board>()).expect("it has slots");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping of shared memory; the kernel keeps the memory while it is mapped.
        let board = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, &map, 0) }?.cast();
        let stamps = Self { board, taken: Cell::new(0) };
        let mut number = filter.as_raw_fd();
        // SAFETY: the number outlives the call, which only reads it.
        unsafe { tun_set_filter(tun.as_raw_fd(), &raw mut number) }?;
        Ok(stamps)
    }

    /// When the packet that is read next arrived, if known.
    ///
    /// Call this once for each packet that is read.
    pub fn next(&self) -> Option<Nanos> {
        if !self.has_next() {
            return None;
        }
        let number = self.taken.get();
        self.taken.set(number + 1);
        Some(self.take(number)).filter(|instant| *instant != 0)
    }

    /// Whether a packet arrived that has not been read yet.
    pub fn has_next(&self) -> bool {
        self.taken.get() < self.count()
    }

    /// The number of packets that have arrived so far.
    pub fn count(&self) -> u64 {
        self.board().count.load(Ordering::Acquire)
    }

    /// Skip the times of the packets before this one. The kernel dropped them, since no packet is waiting to be read.
    pub fn skip_to(&self, number: u64) {
        for skipped in self.taken.get()..number {
            self.take(skipped);
            self.taken.set(skipped + 1);
        }
    }

    /// The instant of a packet. It is erased, so that the packet that uses the same slot next cannot get it.
    fn take(&self, number: u64) -> Nanos {
        self.board().instants[number as usize % SLOTS].swap(0, Ordering::AcqRel)
    }

    fn board(&self) -> &Board {
        // SAFETY: mapped until this is dropped; the kernel's accesses are atomic too.
        unsafe { self.board.as_ref() }
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        // SAFETY: mapped in `attach` with this length, and nothing borrows it any more.
        let _ = unsafe { munmap(self.board.cast(), size_of::<Board>()) };
    }
}

/// An instruction: operation, destination and source register, offset, constant.
type Instruction = (u8, u8, u8, i16, i32);

/// Write the time into the next slot, and accept the whole packet.
fn program(map: &OwnedFd) -> [Instruction; 11] {
    const CALL: u8 = 0x85;
    const LOAD_64_BIT_CONSTANT: u8 = 0x18;
    const ADDRESS_IN_MAP: u8 = 2;
    const SET: u8 = 0xb7;
    const SET_32_BIT: u8 = 0xb4;
    const ATOMIC: u8 = 0xdb;
    const FETCH_AND_ADD: i32 = 1;
    const AND: u8 = 0x57;
    const SHIFT_LEFT: u8 = 0x67;
    const ADD_REGISTER: u8 = 0x0f;
    const STORE: u8 = 0x7b;
    const EXIT: u8 = 0x95;
    let count = offset_of!(Board, count) as i16;
    let instants = offset_of!(Board, instants) as i16;
    [
        (CALL, 0, 0, 0, HELPER_KTIME_GET_NS),
        (LOAD_64_BIT_CONSTANT, 1, ADDRESS_IN_MAP, 0, map.as_raw_fd()),
        (0, 0, 0, 0, 0), // the upper half: the offset in the map
        (SET, 2, 0, 0, 1),
        (ATOMIC, 1, 2, count, FETCH_AND_ADD),
        (AND, 2, 0, 0, SLOTS as i32 - 1),
        (SHIFT_LEFT, 2, 0, 0, size_of::<AtomicU64>().ilog2() as i32),
        (ADD_REGISTER, 1, 2, 0, 0),
        (STORE, 1, 0, instants, 0),
        (SET_32_BIT, 0, 0, 0, -1),
        (EXIT, 0, 0, 0, 0),
    ]
}

fn create_map() -> io::Result<OwnedFd> {
    let key_bytes = size_of::<u32>() as u32;
    let mut request = [0u8; 72];
    let fields = [MAP_TYPE_ARRAY, key_bytes, size_of::<Board>() as u32, 1, MAP_MAY_BE_SHARED];
    for (place, field) in request.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_ne_bytes());
    }
    bpf(MAP_CREATE, &request)
}

fn load_program(program: &[Instruction]) -> io::Result<OwnedFd> {
    let mut code = Vec::new();
    for (operation, destination, source, offset, constant) in program {
        code.extend([*operation, destination | source << 4]);
        code.extend(offset.to_ne_bytes());
        code.extend(constant.to_ne_bytes());
    }
    let license = c"Apache-2.0";
    let mut request = [0u8; 72];
    request[0..4].copy_from_slice(&PROGRAM_TYPE_SOCKET_FILTER.to_ne_bytes());
    request[4..8].copy_from_slice(&(program.len() as u32).to_ne_bytes());
    request[8..16].copy_from_slice(&(code.as_ptr() as u64).to_ne_bytes());
    request[16..24].copy_from_slice(&(license.as_ptr() as u64).to_ne_bytes());
    bpf(PROGRAM_LOAD, &request)
}

/// One request of bpf(2) that returns a descriptor.
fn bpf(kind: libc::c_long, request: &[u8]) -> io::Result<OwnedFd> {
    // SAFETY: the request, and what it points to, outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, kind, request.as_ptr(), request.len()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}
