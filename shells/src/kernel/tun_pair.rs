//! The pair of TUN devices that connects the namespace of a shell with the new one inside it.

use std::fs::File;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};

use super::address_block::{AddressBlock, Family, Prefix};
use super::masquerade::Masquerade;
use super::privilege;
use super::routes::{Device, LOOPBACK, Route, Routes, Target};
use super::sysctl;
use super::tun::Tun;
use crate::error::{Attempt, Error, Result, complain};
use crate::packet::MTU;

/// The name of the inner device, as in Mahimahi.
const INNER_NAME: &str = "ingress";

/// How many packets the kernel holds until we read them. Only the emulated queue may drop packets, so this queue must
/// be long enough. It costs 8 bytes a packet.
const READ_QUEUE_PACKETS: u32 = 100_000;

/// A pair of TUN devices, one in the current network namespace and one in a new one.
pub struct TunPair {
    pub outer: Tun,
    pub inner: Tun,
    inside: OwnedFd,
    /// The addresses of this shell and of everything nested in it.
    pub block: AddressBlock,
    /// Whether the current namespace is outside all other shells.
    pub is_outermost: bool,
    /// Netlink of the namespaces outside and inside.
    routes: [Routes; 2],
    _ways_out: Vec<Masquerade>,
}

impl TunPair {
    /// The new network namespace.
    pub fn inside(&self) -> Result<OwnedFd> {
        self.inside.try_clone().attempt(|| "copy a file descriptor")
    }

    /// How many packets the kernel dropped because they were not read fast enough.
    pub fn overflowed(&self) -> Result<u64> {
        let [outside, inside] = &self.routes;
        [(outside, &self.outer), (inside, &self.inner)].into_iter().try_fold(0, |sum, (routes, tun)| {
            let count = routes.overflowed(tun.device());
            Ok(sum + count.attempt(|| format!("ask for the counts of the TUN device {}", tun.name()))?)
        })
    }
}

/// Make a new network namespace that reaches the current one through a pair of TUN devices.
///
/// The caller stays in the current namespace. `kind` names the outer device (`delay` gives `delay-0`); an outermost
/// shell takes its addresses from `pool`.
pub fn open_tun_pair(kind: &str, pool: AddressBlock) -> Result<TunPair> {
    privilege::ensure()?;
    let outer = Tun::open(&format!("{kind}-%d"))?;
    let surroundings = Surroundings::find()?;
    let families = surroundings.families(&outer);
    let (block, routes_outside) = connect_outer(&outer, &surroundings.blocks(pool)?, &families)?;

    let outside = current_namespace()?;
    unshare(CloneFlags::CLONE_NEWNET).attempt(|| "make a network namespace (run as root)")?;
    let inside = current_namespace()?;
    let inner = Tun::open(INNER_NAME)?;
    let routes_inside = connect_inner(&inner, block, &families)?;
    setns(outside, CloneFlags::CLONE_NEWNET).attempt(|| "return to the outer network namespace")?;

    let is_outermost = surroundings.parent.is_none();
    let families = families.into_iter().filter(|family| is_outermost && surroundings.leads_out(*family));
    let ways_out = families.filter_map(|family| lead_out(&outer, block, pool, family)).collect();
    let routes = [routes_outside, routes_inside];
    Ok(TunPair { outer, inner, inside, block, is_outermost, routes, _ways_out: ways_out })
}

fn current_namespace() -> Result<OwnedFd> {
    // The namespace of this thread; /proc/self would give the main thread's.
    let path = "/proc/thread-self/ns/net";
    File::open(path).map(OwnedFd::from).attempt(|| format!("open {path} (is /proc mounted?)"))
}

/// Choose a block and route it to the outer device.
fn connect_outer(
    tun: &Tun,
    candidates: &[AddressBlock],
    families: &[Family],
) -> Result<(AddressBlock, Routes)> {
    prepare_device(tun, families)?;
    // Packets from a shell may go anywhere. The settings of the namespace's other devices must not be changed.
    sysctl::set(&format!("ipv4/conf/{}/forwarding", tun.name()), "1")?;
    let routes = open_routes()?;
    bring_up(&routes, tun)?;
    let block = claim_block(&routes, tun.device(), candidates)?;
    for family in families {
        routes.add_address(tun.device(), block.outer_end(*family)).attempt(|| address_attempt(tun))?;
    }
    if families.contains(&Family::V6) {
        let addresses = block.addresses(Family::V6);
        routes
            .add_route(addresses, &Target::Device(tun.device()))
            .attempt(|| format!("add a route to {addresses}"))?;
    }
    Ok((block, routes))
}

/// Make the new namespace reach everything through the inner device, and forward packets of nested shells.
fn connect_inner(tun: &Tun, block: AddressBlock, families: &[Family]) -> Result<Routes> {
    sysctl::set("ipv4/ip_forward", "1")?;
    sysctl::set("ipv4/conf/all/rp_filter", "0")?;
    sysctl::set("ipv4/conf/default/rp_filter", "0")?;
    if families.contains(&Family::V6) {
        sysctl::set("ipv6/conf/all/forwarding", "1")?;
    }
    prepare_device(tun, families)?;
    let routes = open_routes()?;
    routes.bring_up(LOOPBACK).attempt(|| "bring up the loopback device inside")?;
    bring_up(&routes, tun)?;
    for family in families {
        let outer_end = block.outer_end(*family);
        let everywhere = Prefix { length: 0, ..block.addresses(*family) };
        routes.add_address(tun.device(), block.inner_end(*family)).attempt(|| address_attempt(tun))?;
        routes
            .mark(block.addresses(*family))
            .and_then(|()| routes.add_route(Prefix::only(outer_end), &Target::Device(tun.device())))
            .and_then(|()| routes.add_route(everywhere, &Target::Gateway(tun.device(), outer_end)))
            .attempt(|| format!("set up routes through the device {} inside", tun.name()))?;
    }
    Ok(routes)
}

/// Prevent the kernel from sending its own packets, and from dropping ours.
fn prepare_device(tun: &Tun, families: &[Family]) -> Result<()> {
    let name = tun.name();
    let set_ipv6 = |key: &str, value| sysctl::set(&format!("ipv6/conf/{name}/{key}"), value);
    if families.contains(&Family::V6) {
        // The kernel must not choose an address, nor solicit routers.
        set_ipv6("addr_gen_mode", "1")?;
        set_ipv6("accept_ra", "0")?;
    } else if has_ipv6() {
        set_ipv6("disable_ipv6", "1")?;
    }
    sysctl::set(&format!("ipv4/conf/{name}/rp_filter"), "0")
}

/// Whether the kernel has IPv6 at all.
fn has_ipv6() -> bool {
    std::fs::exists("/proc/sys/net/ipv6").unwrap_or(false)
}

fn bring_up(routes: &Routes, tun: &Tun) -> Result<()> {
    routes
        .set_limits(tun.device(), MTU as u32, READ_QUEUE_PACKETS)
        .and_then(|()| routes.bring_up(tun.device()))
        .attempt(|| format!("bring up the TUN device {}", tun.name()))
}

/// Let commands inside reach the Internet. A network without access to it is still useful, so failures are warnings.
fn lead_out(outer: &Tun, block: AddressBlock, pool: AddressBlock, family: Family) -> Option<Masquerade> {
    let out_of_reach = "the world outside is out of reach inside";
    let forwards = |key| sysctl::get(key).as_deref() == Some("1");
    match family {
        Family::V4 if !forwards("ipv4/ip_forward") => {
            complain(&format!("{out_of_reach}; to let packets through: sysctl -w net.ipv4.ip_forward=1"));
        }
        // Few machines forward IPv6, and few commands require it: a warning each time would be useless.
        Family::V6 if !forwards("ipv6/conf/all/forwarding") => return None,
        _ => {}
    }
    let table = format!("shell-{}", outer.name());
    Masquerade::new(&table, block.addresses(family), pool.addresses(family))
        .inspect_err(|error| {
            complain(&format!("{out_of_reach}: this kernel translates no addresses ({error})"))
        })
        .ok()
}

/// The blocks of the current namespace.
struct Surroundings {
    /// The block of the shell that contains this namespace, if any.
    parent: Option<AddressBlock>,
    used: Vec<AddressBlock>,
    /// Whether there is an IPv6 address here other than loopback and link-local ones.
    has_ipv6: bool,
    /// The families in which packets can leave this namespace.
    ways_out: Vec<Family>,
}

impl Surroundings {
    fn find() -> Result<Self> {
        let routes = open_routes()?;
        let list = |family| routes.list(family).attempt(|| "list the routes of this namespace");
        let ipv4 = list(Family::V4)?;
        let ipv6 = if has_ipv6() { list(Family::V6)? } else { Vec::new() };
        let (marks, others): (Vec<_>, Vec<_>) = ipv4.iter().partition(|route| route.is_mark);
        let leads_out = |routes: &[Route]| routes.iter().any(|route| route.leads_on && route.to.length == 0);
        let mut ways_out = Vec::new();
        ways_out.extend(leads_out(&ipv4).then_some(Family::V4));
        ways_out.extend(leads_out(&ipv6).then_some(Family::V6));
        Ok(Self {
            parent: marks.first().and_then(|mark| ipv4_block(mark.to)),
            used: others.into_iter().filter_map(|route| ipv4_block(route.to)).collect(),
            has_ipv6: ipv6.iter().any(|route| route.is_mark || route.leads_on && goes_beyond_links(route.to)),
            ways_out,
        })
    }

    /// The families that shells here support. IPv6 is included only if this namespace has it, since commands inside
    /// would otherwise try it in vain.
    fn families(&self, outer: &Tun) -> Vec<Family> {
        let disabled = sysctl::get(&format!("ipv6/conf/{}/disable_ipv6", outer.name()));
        let ipv6 = self.has_ipv6 && disabled.as_deref() == Some("0");
        if ipv6 { vec![Family::V4, Family::V6] } else { vec![Family::V4] }
    }

    fn leads_out(&self, family: Family) -> bool {
        self.ways_out.contains(&family)
    }

    /// The blocks that a shell may take here, in order of preference; at least one.
    fn blocks(&self, pool: AddressBlock) -> Result<Vec<AddressBlock>> {
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

/// The block to which a route leads; none for a default route, which does not lead to a single block.
fn ipv4_block(to: Prefix) -> Option<AddressBlock> {
    match to.address {
        IpAddr::V4(address) if to.length > 0 => Some(AddressBlock::around(address, to.length)),
        _ => None,
    }
}

/// Whether these are addresses other than those that every machine and every link has.
fn goes_beyond_links(to: Prefix) -> bool {
    match to.address {
        IpAddr::V6(address) => {
            address != Ipv6Addr::LOCALHOST && !address.is_unicast_link_local() && !address.is_multicast()
        }
        IpAddr::V4(_) => false,
    }
}

/// Take the first block that no other shell has, by adding a route to it.
///
/// The kernel refuses a second route to the same block, which settles the race between two shells that start at once.
fn claim_block(routes: &Routes, device: Device, candidates: &[AddressBlock]) -> Result<AddressBlock> {
    for block in candidates {
        match routes.add_route(block.addresses(Family::V4), &Target::Device(device)) {
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
