//! `masque_proxy`: a CONNECT-UDP proxy (RFC 9298) over QUIC version 1 and HTTP/3.
//!
//! Its clients are this testbed's browsers, and it forwards only to the hosts listed in a file.

use std::collections::HashMap;
use std::fs;
use std::io::{Write, stdout};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::{Context, Result, bail};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use clap::Parser;
use eyelevel_quinn_server::bounded::{Bounded, MAX_HEADER_BYTES};
use eyelevel_quinn_server::congestion::{CongestionControl, Factory, name_of};
use h3::ext::Protocol;
use h3::quic::{RecvStream, SendStream};
use h3::server::{RequestResolver, RequestStream};
use http::{Method, Request, Response, StatusCode};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, Incoming, SendDatagramError, ServerConfig, TransportConfig, VarInt};
use quinn_proto::coding::Codec;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::UdpSocket;
use tokio::signal::unix::{SignalKind, signal};

/// The beginning of a request's path, before the destination's host and port.
const PATH: &str = "/.well-known/masque/udp/";
/// The context of datagrams with a UDP payload; it is their first byte (RFC 9298, section 4).
const UDP_CONTEXT: u8 = 0;
/// The payload of every full packet to the browser: it fits into Ethernet's 1500 bytes over IPv6, and so over IPv4,
/// too.
const PACKET_BYTES: u16 = 1452;
/// At most this many bytes wait to be sent to a browser while the congestion window is full; beyond that, the oldest
/// are dropped. The same limit holds for bytes that wait to be sent to its servers.
const QUEUE_BYTES: usize = 1024 * 1024;
/// More than any browser opens to its proxy. Each connection has two queues, so this limits the memory.
const MAX_CONNECTIONS: usize = 100;
/// Each host of a page has a tunnel, which is a request.
const MAX_TUNNELS: u32 = 1000;
/// The streams that HTTP/3 needs in addition to requests, with some to spare.
const MAX_CONTROL_STREAMS: u32 = 16;
/// How much a client may send on a stream, and on all streams of a connection, before the proxy has read it. The same
/// as in quinn_server.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The same as in quinn_server.
const IDLE_TIMEOUT_MS: u32 = 600_000;
/// The port of `http:` URLs, for which browsers never use QUIC.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
const NO_ERROR: u32 = 0x100; // H3_NO_ERROR (RFC 9114, section 8.1)

/// Forward datagrams of UDP through HTTP/3, as a proxy of CONNECT-UDP (RFC 9298)
///
/// Prints a line when it listens. Ends on SIGTERM and SIGINT.
#[derive(Parser)]
#[command(name = "masque_proxy", version)]
struct Arguments {
    /// Where to listen: an IP address and UDP port
    #[arg(long)]
    address: SocketAddr,

    /// The certificate chain, in PEM, the proxy's own first
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,

    /// Its private key, in PEM
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    /// The hosts that can be reached, as in hosts(5)
    #[arg(long, value_name = "FILE")]
    hosts: PathBuf,

    #[arg(long, value_enum, default_value = "cubic")]
    congestion_control: CongestionControl,

    /// The congestion window at the beginning, in bytes
    #[arg(long, value_name = "BYTES", default_value = "14600", value_parser = clap::value_parser!(u64).range(2904..=1 << 24))]
    initial_window: u64,

    /// The file for the counts of events, written as JSON at the end
    #[arg(long, value_name = "FILE")]
    account: PathBuf,
}

/// Counts of events so far. `tcp`: requests for TCP to a known host, which are refused; those for `http:` URLs are not
/// counted. `unknown`: requests for an unknown host, or for anything else. `too_long`: datagrams from servers that fit
/// into no packet to the browser. `without_tunnel`: datagrams from the browser that came before their tunnel existed or
/// after its end. Both of these are dropped. `overflows`: datagrams to the browser that displaced older ones, since the
/// queue was full.
#[derive(Default)]
struct Account {
    connections: AtomicU64,
    tunnels: AtomicU64,
    tcp: AtomicU64,
    unknown: AtomicU64,
    to_servers: AtomicU64,
    to_browser: AtomicU64,
    too_long: AtomicU64,
    overflows: AtomicU64,
    without_tunnel: AtomicU64,
    /// The congestion control of the last connection and its initial window in bytes, as the connection itself reports
    /// them.
    sender: Mutex<Option<(&'static str, u64)>>,
}

impl Account {
    fn write(&self, path: &Path) -> Result<()> {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let sender = *held(&self.sender);
        let text = json!({
            "connections": number(&self.connections),
            "tunnels": number(&self.tunnels),
            "tcp_requests": number(&self.tcp),
            "unknown_requests": number(&self.unknown),
            "datagrams_to_servers": number(&self.to_servers),
            "datagrams_to_browser": number(&self.to_browser),
            "datagrams_too_long": number(&self.too_long),
            "queue_overflows": number(&self.overflows),
            "datagrams_without_tunnel": number(&self.without_tunnel),
            "congestion_control": sender.map(|(name, _)| name),
            "initial_window_bytes": sender.map(|(_, window)| window),
        });
        fs::write(path, text.to_string()).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The state that all connections share.
struct Proxy {
    hosts: HashMap<String, IpAddr>,
    account: Account,
}

/// The tunnels of a connection; each has a socket that is connected to a server. Its key is the number of its stream
/// divided by four, which its datagrams carry (RFC 9297, section 2.1).
type Sockets = Arc<Mutex<HashMap<VarInt, Arc<UdpSocket>>>>;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("masque_proxy: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(arguments: &Arguments) -> Result<()> {
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let text = fs::read_to_string(&arguments.hosts)
        .with_context(|| format!("cannot read the hosts {}", arguments.hosts.display()))?;
    let hosts = without_address(hosts_of(&text)?, arguments.address.ip());
    let proxy = Arc::new(Proxy { hosts, account: Account::default() });
    let endpoint = Endpoint::server(server_config(arguments)?, arguments.address)
        .with_context(|| format!("cannot listen on {}", arguments.address))?;
    writeln!(stdout(), "listening on {}", endpoint.local_addr()?)?;
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let incoming = incoming.context("the endpoint is closed")?;
                if endpoint.open_connections() >= MAX_CONNECTIONS {
                    incoming.refuse();
                    continue;
                }
                let proxy = proxy.clone();
                tokio::spawn(async move {
                    if let Err(error) = serve(incoming, proxy).await {
                        eprintln!("masque_proxy: {error:#}");
                    }
                });
            }
            _ = terminated.recv() => break,
            _ = interrupted.recv() => break,
        }
    }
    endpoint.close(NO_ERROR.into(), b"the proxy ends");
    proxy.account.write(&arguments.account)
}

fn server_config(arguments: &Arguments) -> Result<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(&arguments.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("cannot read the certificate {}", arguments.certificate.display()))?;
    let key = PrivateKeyDer::from_pem_file(&arguments.key)
        .with_context(|| format!("no usable PEM private key in {}", arguments.key.display()))?;
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.send_tls13_tickets = 0;
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(PACKET_BYTES)
        .min_mtu(PACKET_BYTES)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .max_concurrent_bidi_streams(MAX_TUNNELS.into())
        .max_concurrent_uni_streams(MAX_CONTROL_STREAMS.into())
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_TIMEOUT_MS).into()))
        .datagram_receive_buffer_size(Some(QUEUE_BYTES))
        .datagram_send_buffer_size(QUEUE_BYTES)
        .congestion_controller_factory(Arc::new(Factory {
            control: arguments.congestion_control,
            initial_window: arguments.initial_window,
            log: None,
        }));
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport)).migration(false);
    Ok(config)
}

/// Host → address, from a text as in hosts(5). The first of several addresses counts.
fn hosts_of(text: &str) -> Result<HashMap<String, IpAddr>> {
    let mut hosts = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(address) = words.next() else { continue };
        let address =
            address.parse().with_context(|| format!("line {} of the hosts is broken", number + 1))?;
        for host in words {
            hosts.entry(host.to_owned()).or_insert(address);
        }
    }
    Ok(hosts)
}

/// `hosts` without those at `address`, the proxy's own: otherwise it could forward to itself in an endless loop.
fn without_address(mut hosts: HashMap<String, IpAddr>, address: IpAddr) -> HashMap<String, IpAddr> {
    hosts.retain(|_, of_host| *of_host != address);
    hosts
}

async fn serve(incoming: Incoming, proxy: Arc<Proxy>) -> Result<()> {
    let quic = incoming.await?;
    proxy.account.connections.fetch_add(1, Ordering::Relaxed);
    let sender = quic.congestion_state();
    *held(&proxy.account.sender) = Some((name_of(sender.as_ref()), sender.initial_window()));
    let mut connection = h3::server::builder()
        .enable_datagram(true)
        .enable_extended_connect(true)
        .max_field_section_size(MAX_HEADER_BYTES)
        .build::<_, Bytes>(Bounded(h3_quinn::Connection::new(quic.clone())))
        .await?;
    let sockets = Sockets::default();
    // This task ends with the connection.
    tokio::spawn(send_to_servers(quic.clone(), sockets.clone(), proxy.clone()));
    // Clients may end the connection in any way.
    while let Ok(Some(resolver)) = connection.accept().await {
        let (proxy, sockets, quic) = (proxy.clone(), sockets.clone(), quic.clone());
        tokio::spawn(async move {
            if let Err(error) = answer(resolver, &proxy, &sockets, &quic).await {
                eprintln!("masque_proxy: {error:#}");
            }
        });
    }
    Ok(())
}

async fn send_to_servers(quic: Connection, sockets: Sockets, proxy: Arc<Proxy>) {
    while let Ok(mut datagram) = quic.read_datagram().await {
        let tunnel = VarInt::decode(&mut datagram).ok();
        let Some(socket) = tunnel.and_then(|tunnel| held(&sockets).get(&tunnel).cloned()) else {
            proxy.account.without_tunnel.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        // If the socket's buffer has no space, the datagram is lost, as at any hop.
        if datagram.try_get_u8() == Ok(UDP_CONTEXT) && socket.try_send(&datagram).is_ok() {
            proxy.account.to_servers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Serves a request until its end. A broken or slow request does not delay others.
async fn answer(
    resolver: RequestResolver<Bounded<h3_quinn::Connection>, Bytes>,
    proxy: &Proxy,
    sockets: &Sockets,
    quic: &Connection,
) -> Result<()> {
    let Ok((request, mut stream)) = resolver.resolve_request().await else { return Ok(()) };
    let refuse = |status| Response::builder().status(status).body(());
    let refusal = match wish_of(&request, &proxy.hosts) {
        Wish::Udp(target) => {
            let tunnel = VarInt::from_u64(stream.id().into_inner() / 4)?;
            let outcome = forward(target, tunnel, stream, proxy, sockets, quic).await;
            held(sockets).remove(&tunnel);
            return outcome;
        }
        Wish::Tcp(port) => {
            proxy.account.tcp.fetch_add(u64::from(port != HTTP_PORT), Ordering::Relaxed);
            refuse(StatusCode::FORBIDDEN)?
        }
        Wish::Unknown => {
            proxy.account.unknown.fetch_add(1, Ordering::Relaxed);
            // Browsers understand this status as "there is no such host".
            refuse(StatusCode::NOT_FOUND)?
        }
    };
    stream.send_response(refusal).await?;
    stream.finish().await?;
    Ok(())
}

/// A socket that is connected to `target` and ready to send.
async fn socket_to(target: SocketAddr) -> Result<UdpSocket> {
    let cannot_reach = || format!("cannot reach {target}");
    let socket = UdpSocket::bind(("0.0.0.0", 0)).await.with_context(cannot_reach)?;
    socket.connect(target).await.with_context(cannot_reach)?;
    // `try_send` fails on a socket whose readiness was never awaited.
    socket.writable().await?;
    Ok(socket)
}

/// Forwards datagrams between the browser and `target` until the browser ends the tunnel.
async fn forward<S: SendStream<Bytes> + RecvStream>(
    target: SocketAddr,
    tunnel: VarInt,
    mut stream: RequestStream<S, Bytes>,
    proxy: &Proxy,
    sockets: &Sockets,
    quic: &Connection,
) -> Result<()> {
    let socket = match socket_to(target).await {
        Ok(socket) => Arc::new(socket),
        Err(error) => {
            // A proxy that cannot forward reports it (RFC 9298 section 3.1), rather than let the browser wait.
            stream.send_response(Response::builder().status(StatusCode::BAD_GATEWAY).body(())?).await?;
            stream.finish().await?;
            return Err(error);
        }
    };
    held(sockets).insert(tunnel, socket.clone());
    let response = Response::builder().status(StatusCode::OK).header("capsule-protocol", "?1").body(())?;
    stream.send_response(response).await?;
    proxy.account.tunnels.fetch_add(1, Ordering::Relaxed);
    // Longer datagrams, which fit into no packet to the browser, are cut.
    let mut buffer = vec![0; PACKET_BYTES.into()];
    loop {
        tokio::select! {
            received = socket.recv(&mut buffer) => {
                // Nobody listens at the port: the browser hears nothing, as on a path that loses packets.
                let Ok(length) = received else { continue };
                let mut datagram = BytesMut::with_capacity(VarInt::MAX_SIZE + 1 + length);
                tunnel.encode(&mut datagram);
                datagram.put_u8(UDP_CONTEXT);
                datagram.put_slice(&buffer[..length]);
                let overflows = quic.datagram_send_buffer_space() < datagram.len();
                let counter = match quic.send_datagram(datagram.freeze()) {
                    Ok(()) => {
                        proxy.account.overflows.fetch_add(overflows.into(), Ordering::Relaxed);
                        &proxy.account.to_browser
                    }
                    Err(SendDatagramError::TooLarge) => &proxy.account.too_long,
                    Err(SendDatagramError::ConnectionLost(_)) => return Ok(()),
                    Err(error) => bail!("the tunnel to {target} broke: {error}"),
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
            // Capsules are ignored: QUIC clients send each payload in a datagram. The end of the stream is the end of
            // the tunnel.
            data = stream.recv_data() => if !matches!(data, Ok(Some(_))) { return Ok(()) },
            _ = quic.closed() => return Ok(()),
        }
    }
}

/// The service that a request asks for.
#[derive(Debug, Eq, PartialEq)]
enum Wish {
    /// Datagrams to this address (CONNECT-UDP).
    Udp(SocketAddr),
    /// TCP to this port of a known host (CONNECT).
    Tcp(u16),
    /// Anything else, or an unknown host.
    Unknown,
}

fn wish_of(request: &Request<()>, hosts: &HashMap<String, IpAddr>) -> Wish {
    let uri = request.uri();
    match (request.method(), request.extensions().get::<Protocol>()) {
        (&Method::CONNECT, Some(&Protocol::CONNECT_UDP)) => {
            udp_target(uri.path(), hosts).map_or(Wish::Unknown, Wish::Udp)
        }
        (&Method::CONNECT, None) if uri.host().is_some_and(|host| hosts.contains_key(host)) => {
            Wish::Tcp(uri.port_u16().unwrap_or(HTTPS_PORT))
        }
        _ => Wish::Unknown,
    }
}

/// The destination of datagrams for `path`.
fn udp_target(path: &str, hosts: &HashMap<String, IpAddr>) -> Option<SocketAddr> {
    let (host, port) = path.strip_prefix(PATH)?.strip_suffix('/')?.split_once('/')?;
    Some(SocketAddr::new(*hosts.get(host)?, port.parse().ok()?))
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> HashMap<String, IpAddr> {
        hosts_of("192.0.2.1 a.example b.example # both\n\n192.0.2.2 a.example\n").unwrap()
    }

    fn wish(uri: &str, protocol: Option<Protocol>) -> Wish {
        let mut request = Request::connect(uri).body(()).unwrap();
        if let Some(protocol) = protocol {
            request.extensions_mut().insert(protocol);
        }
        wish_of(&request, &hosts())
    }

    #[test]
    fn datagrams_go_to_the_host_and_port_of_the_path() {
        for (host, port) in [("a.example", 443), ("b.example", 8443)] {
            let uri = format!("https://proxy.example{PATH}{host}/{port}/");
            let target = SocketAddr::from(([192, 0, 2, 1], port));
            assert_eq!(wish(&uri, Some(Protocol::CONNECT_UDP)), Wish::Udp(target));
        }
    }

    #[test]
    fn what_wants_tcp_or_another_host_is_told_from_what_does_not() {
        assert_eq!(wish("a.example:443", None), Wish::Tcp(443));
        assert_eq!(wish("b.example:80", None), Wish::Tcp(80));
        assert_eq!(wish("c.example:443", None), Wish::Unknown);
        for (path, protocol) in [
            ("/.well-known/masque/udp/a.example/443/", Protocol::WEB_TRANSPORT),
            ("/.well-known/masque/udp/a.example/443", Protocol::CONNECT_UDP),
            ("/.well-known/masque/udp/c.example/443/", Protocol::CONNECT_UDP),
            ("/.well-known/masque/udp/a.example/65536/", Protocol::CONNECT_UDP),
            ("/a.example/443/", Protocol::CONNECT_UDP),
        ] {
            assert_eq!(
                wish(&format!("https://proxy.example{path}"), Some(protocol)),
                Wish::Unknown,
                "{path}"
            );
        }
    }

    #[test]
    fn the_proxy_forwards_nothing_to_itself() {
        let others = without_address(hosts(), IpAddr::from([192, 0, 2, 1]));
        assert!(others.is_empty(), "{others:?}");
        assert_eq!(without_address(hosts(), IpAddr::from([192, 0, 2, 2])), hosts());
    }

    #[test]
    fn a_broken_list_of_hosts_is_one_line_that_says_where() {
        let error = hosts_of("192.0.2.1 a.example\na.example 192.0.2.1\n").unwrap_err();
        assert!(error.to_string().contains("line 2 of the hosts"), "{error}");
    }
}
