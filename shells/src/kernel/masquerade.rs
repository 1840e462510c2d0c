//! Translation of source addresses, through which commands inside reach the Internet.
//!
//! The rule is made over netlink, without any program (linux/netfilter/nf_tables.h). Its table belongs to a socket and
//! disappears when the socket closes, however the shell ends.

use std::net::IpAddr;

use nix::libc;

use super::address_block::Prefix;
use super::netlink::{Message, Netlink};

/// `NFT_TABLE_F_OWNER`, which the libc crate lacks.
const TABLE_OWNED: u32 = 2;
/// `NF_INET_POST_ROUTING` and the priority of source translation (`NF_IP_PRI_NAT_SRC`).
const POST_ROUTING: u32 = 4;
const SOURCE_NAT: u32 = 100;
/// The offsets of source and destination in the headers of IPv4 and IPv6.
const OFFSETS_V4: (u32, u32) = (12, 16);
const OFFSETS_V6: (u32, u32) = (8, 24);

/// Numbers of attributes (`NFTA_…`), which the libc crate lacks.
mod attribute {
    pub const TABLE_NAME: u16 = 1;
    pub const TABLE_FLAGS: u16 = 2;
    pub const CHAIN_TABLE: u16 = 1;
    pub const CHAIN_NAME: u16 = 3;
    pub const CHAIN_HOOK: u16 = 4;
    pub const CHAIN_TYPE: u16 = 7;
    pub const HOOK_HOOKNUM: u16 = 1;
    pub const HOOK_PRIORITY: u16 = 2;
    pub const RULE_TABLE: u16 = 1;
    pub const RULE_CHAIN: u16 = 2;
    pub const RULE_EXPRESSIONS: u16 = 4;
    pub const LIST_ELEM: u16 = 1;
    pub const EXPR_NAME: u16 = 1;
    pub const EXPR_DATA: u16 = 2;
    pub const PAYLOAD_DREG: u16 = 1;
    pub const PAYLOAD_BASE: u16 = 2;
    pub const PAYLOAD_OFFSET: u16 = 3;
    pub const PAYLOAD_LEN: u16 = 4;
    pub const BITWISE_SREG: u16 = 1;
    pub const BITWISE_DREG: u16 = 2;
    pub const BITWISE_LEN: u16 = 3;
    pub const BITWISE_MASK: u16 = 4;
    pub const BITWISE_XOR: u16 = 5;
    pub const CMP_SREG: u16 = 1;
    pub const CMP_OP: u16 = 2;
    pub const CMP_DATA: u16 = 3;
    pub const DATA_VALUE: u16 = 1;
}

const REGISTER: u32 = libc::NFT_REG_1 as u32;
const NETWORK_HEADER: u32 = libc::NFT_PAYLOAD_NETWORK_HEADER as u32;

/// Translates source addresses until it is dropped.
pub struct Masquerade {
    _owner: Netlink,
}

impl Masquerade {
    /// Translate packets that come from the block and do not go to other shells, whose addresses are in the pool. Both
    /// must be of one family. `name` is the table's name, which must be unique among tables of that family in the
    /// namespace.
    pub fn new(name: &str, block: Prefix, pool: Prefix) -> nix::Result<Self> {
        let (family, (source, destination)) = match block.address {
            IpAddr::V4(_) => (libc::AF_INET, OFFSETS_V4),
            IpAddr::V6(_) => (libc::AF_INET6, OFFSETS_V6),
        };
        let netlink = Netlink::netfilter()?;
        let table = || c_string(name);
        let chain = || c_string("postrouting");
        let message = |kind: i32, flags: i32| Message::netfilter(kind, flags, family as u8);
        let create = libc::NLM_F_CREATE;
        let hook = Message::part()
            .attribute(attribute::HOOK_HOOKNUM, &POST_ROUTING.to_be_bytes())
            .attribute(attribute::HOOK_PRIORITY, &SOURCE_NAT.to_be_bytes());
        let rule = [
            load_address(source, block),
            mask(block),
            compare(libc::NFT_CMP_EQ as u32, block),
            load_address(destination, pool),
            mask(pool),
            compare(libc::NFT_CMP_NEQ as u32, pool),
            expression("masq", Message::part()),
        ];
        let expressions = rule
            .into_iter()
            .fold(Message::part(), |list, expression| list.nested(attribute::LIST_ELEM, expression));
        netlink.batch(vec![
            message(libc::NFT_MSG_NEWTABLE, create)
                .attribute(attribute::TABLE_NAME, &table())
                .attribute(attribute::TABLE_FLAGS, &TABLE_OWNED.to_be_bytes()),
            message(libc::NFT_MSG_NEWCHAIN, create)
                .attribute(attribute::CHAIN_TABLE, &table())
                .attribute(attribute::CHAIN_NAME, &chain())
                .nested(attribute::CHAIN_HOOK, hook)
                .attribute(attribute::CHAIN_TYPE, &c_string("nat")),
            message(libc::NFT_MSG_NEWRULE, create | libc::NLM_F_APPEND)
                .attribute(attribute::RULE_TABLE, &table())
                .attribute(attribute::RULE_CHAIN, &chain())
                .nested(attribute::RULE_EXPRESSIONS, expressions),
        ])?;
        Ok(Self { _owner: netlink })
    }
}

fn expression(name: &str, data: Message) -> Message {
    Message::part().attribute(attribute::EXPR_NAME, &c_string(name)).nested(attribute::EXPR_DATA, data)
}

/// Load an address from the IP header, with the length of the block's addresses, into the register.
fn load_address(offset: u32, block: Prefix) -> Message {
    let data = Message::part()
        .attribute(attribute::PAYLOAD_DREG, &REGISTER.to_be_bytes())
        .attribute(attribute::PAYLOAD_BASE, &NETWORK_HEADER.to_be_bytes())
        .attribute(attribute::PAYLOAD_OFFSET, &offset.to_be_bytes())
        .attribute(attribute::PAYLOAD_LEN, &length(block));
    expression("payload", data)
}

/// Keep only those bits of the register that the block's addresses share.
fn mask(block: Prefix) -> Message {
    let value = |bytes: &[u8]| Message::part().attribute(attribute::DATA_VALUE, bytes);
    let data = Message::part()
        .attribute(attribute::BITWISE_SREG, &REGISTER.to_be_bytes())
        .attribute(attribute::BITWISE_DREG, &REGISTER.to_be_bytes())
        .attribute(attribute::BITWISE_LEN, &length(block))
        .nested(attribute::BITWISE_MASK, value(&block.mask()))
        .nested(attribute::BITWISE_XOR, value(&vec![0; block.octets().len()]));
    expression("bitwise", data)
}

/// Continue with the rule only if this comparison of the register with the block's first address is true.
fn compare(operation: u32, block: Prefix) -> Message {
    let value = Message::part().attribute(attribute::DATA_VALUE, &block.octets());
    let data = Message::part()
        .attribute(attribute::CMP_SREG, &REGISTER.to_be_bytes())
        .attribute(attribute::CMP_OP, &operation.to_be_bytes())
        .nested(attribute::CMP_DATA, value);
    expression("cmp", data)
}

/// The number of bytes of the block's addresses, in the byte order of netfilter.
fn length(block: Prefix) -> [u8; 4] {
    (block.octets().len() as u32).to_be_bytes()
}

fn c_string(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}
