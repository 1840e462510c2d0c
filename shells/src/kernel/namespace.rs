//! The passage between the namespace a shell was started in and the new one inside it.

use std::fs::File;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};

use super::block::Block;
use super::masquerade::Masquerade;
use super::privilege;
use super::routes::{Device, LOOPBACK, Routes, Target};
use super::sysctl;
use super::tun::{MTU, Tun};
use crate::error::{Attempt, Error, Result, complain};

/// Name of the device inside, as in Mahimahi.
const INNER_NAME: &str = "ingress";

/// Packets the kernel may hold for us to read: the emulated queue is the one that decides what is dropped,
/// never this one. It costs 8 bytes a packet.
const READ_QUEUE_PACKETS: u32 = 100_000;

/// A pair of TUN devices, one in the current network namespace and one in a new one.
pub struct Passage {
    pub outer: Tun,
    pub inner: Tun,
    inside: OwnedFd,
    /// The addresses of this shell and of everything nested in it.
    pub block: Block,
    /// Whether the current namespace is no shell's inside.
    pub is_outermost: bool,
    _way_out: Option<Masquerade>,
}

impl Passage {
    /// The new network namespace.
    pub fn inside(&self) -> Result<OwnedFd> {
        self.inside.try_clone().attempt(|| "copy a file descriptor")
    }
}

/// Make a new network namespace that reaches the current one through a pair of TUN devices.
///
/// The caller stays in the current namespace. `kind` names the outer device (`delay` gives `delay-0`);
/// `pool` is what an outermost shell takes its addresses from.
pub fn open_passage(kind: &str, pool: Block) -> Result<Passage> {
    privilege::ensure()?;
    let outer = Tun::open(&format!("{kind}-%d"))?;
    let surroundings = Surroundings::find()?;
    let block = connect_outer(&outer, &surroundings.blocks(pool)?)?;

    let outside = current_namespace()?;
    unshare(CloneFlags::CLONE_NEWNET).attempt(|| "make a network namespace (run as root)")?;
    let inside = current_namespace()?;
    let inner = Tun::open(INNER_NAME)?;
    connect_inner(&inner, block)?;
    setns(outside, CloneFlags::CLONE_NEWNET).attempt(|| "return to the outer network namespace")?;

    let is_outermost = surroundings.parent.is_none();
    let leads_out = is_outermost && surroundings.has_way_out;
    let way_out = if leads_out { lead_out(&outer, block, pool) } else { None };
    Ok(Passage { outer, inner, inside, block, is_outermost, _way_out: way_out })
}

fn current_namespace() -> Result<OwnedFd> {
    // Of the thread: /proc/self would be the main thread's.
    let path = "/proc/thread-self/ns/net";
    File::open(path).map(OwnedFd::from).attempt(|| format!("open {path} (is /proc mounted?)"))
}

/// Take a block and lead it to the outer device.
fn connect_outer(tun: &Tun, candidates: &[Block]) -> Result<Block> {
    prepare_device(tun)?;
    // What comes out of a shell may go on to anywhere; the namespace's other devices are not ours to change.
    sysctl::set(&format!("ipv4/conf/{}/forwarding", tun.name()), "1")?;
    let routes = open_routes()?;
    bring_up(&routes, tun)?;
    let block = claim_block(&routes, tun.device(), candidates)?;
    routes.add_address(tun.device(), block.outer_end()).attempt(|| address_attempt(tun))?;
    Ok(block)
}

/// Make the new namespace reach everything through the inner device, and pass on what nested shells send.
fn connect_inner(tun: &Tun, block: Block) -> Result<()> {
    sysctl::set("ipv4/ip_forward", "1")?;
    sysctl::set("ipv4/conf/all/rp_filter", "0")?;
    sysctl::set("ipv4/conf/default/rp_filter", "0")?;
    prepare_device(tun)?;
    let routes = open_routes()?;
    routes.bring_up(LOOPBACK).attempt(|| "bring up the loopback device inside")?;
    bring_up(&routes, tun)?;
    routes.add_address(tun.device(), block.inner_end()).attempt(|| address_attempt(tun))?;

    let everywhere = Block::around(block.base(), 0);
    let outer_end = Block::around(block.outer_end(), 32);
    let through_outer_end = Target::Gateway(tun.device(), block.outer_end());
    routes
        .mark(block)
        .and_then(|()| routes.add_route(outer_end, &Target::Device(tun.device())))
        .and_then(|()| routes.add_route(everywhere, &through_outer_end))
        .attempt(|| format!("set up routes through the device {} inside", tun.name()))
}

/// Keep the kernel from adding packets of its own or dropping ours.
fn prepare_device(tun: &Tun) -> Result<()> {
    let name = tun.name();
    if std::fs::exists("/proc/sys/net/ipv6").unwrap_or(false) {
        sysctl::set(&format!("ipv6/conf/{name}/disable_ipv6"), "1")?;
    }
    sysctl::set(&format!("ipv4/conf/{name}/rp_filter"), "0")
}

fn bring_up(routes: &Routes, tun: &Tun) -> Result<()> {
    routes
        .set_limits(tun.device(), MTU as u32, READ_QUEUE_PACKETS)
        .and_then(|()| routes.bring_up(tun.device()))
        .attempt(|| format!("bring up the TUN device {}", tun.name()))
}

/// Let what is inside reach the world. A network that does not is still of use, so this only warns.
fn lead_out(outer: &Tun, block: Block, pool: Block) -> Option<Masquerade> {
    let out_of_reach = "the world outside is out of reach inside";
    if sysctl::get("ipv4/ip_forward").as_deref() != Some("1") {
        complain(&format!("{out_of_reach}; to let packets through: sysctl -w net.ipv4.ip_forward=1"));
    }
    let table = format!("shell-{}", outer.name());
    Masquerade::new(&table, block, pool)
        .inspect_err(|error| {
            complain(&format!("{out_of_reach}: this kernel translates no addresses ({error})"))
        })
        .ok()
}

/// The blocks of the current namespace.
struct Surroundings {
    /// The block of the shell inside which this is, if it is inside one.
    parent: Option<Block>,
    /// Whether packets have a way to the world from here.
    has_way_out: bool,
    used: Vec<Block>,
}

impl Surroundings {
    fn find() -> Result<Self> {
        let list = open_routes()?.list().attempt(|| "list the routes of this namespace")?;
        let (marks, others): (Vec<_>, Vec<_>) = list.into_iter().partition(|route| route.is_mark);
        let (defaults, used): (Vec<_>, Vec<_>) =
            others.into_iter().map(|route| route.to).partition(|block| block.prefix() == 0);
        Ok(Self { parent: marks.first().map(|mark| mark.to), has_way_out: !defaults.is_empty(), used })
    }

    /// The blocks that a shell may take here, in order of preference; at least one.
    fn blocks(&self, pool: Block) -> Result<Vec<Block>> {
        let candidates: Vec<_> = match self.parent {
            Some(parent) => parent.for_nested().collect(),
            None => pool.for_outermost().collect(),
        };
        let free = candidates.into_iter().filter(|block| !self.used.iter().any(|used| used.overlaps(*block)));
        let free: Vec<_> = free.collect();
        if free.is_empty() {
            return Err(Error::new(match self.parent {
                Some(parent) => {
                    format!("no addresses are left in {parent} for another shell; nest fewer shells")
                }
                None => format!("the addresses {pool} are all in use here; choose others with --addresses"),
            }));
        }
        Ok(free)
    }
}

/// Take the first block that still nobody has, by a route to it.
///
/// The kernel refuses a second route to the same block, which settles the race between two shells that
/// start at once.
fn claim_block(routes: &Routes, device: Device, candidates: &[Block]) -> Result<Block> {
    for block in candidates {
        match routes.add_route(*block, &Target::Device(device)) {
            Ok(()) => return Ok(*block),
            Err(Errno::EEXIST) => {}
            Err(error) => return Err(error).attempt(|| format!("add a route to {block}")),
        }
    }
    Err(Error::new("other shells took all addresses while this one started; start it again"))
}

fn open_routes() -> Result<Routes> {
    Routes::open().attempt(|| "open a netlink socket")
}

fn address_attempt(tun: &Tun) -> String {
    format!("give the TUN device {} an address", tun.name())
}
