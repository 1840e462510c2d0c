//! quinn and h3, configured for the testbed: all numbers are explicit, so they do not depend on the version's defaults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::ValueEnum;
use h3::server::{RequestResolver, RequestStream};
use http::Response;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    Connection, ConnectionError, EndpointConfig, Incoming, ServerConfig, TokioRuntime, TransportConfig,
    ValidationTokenConfig, VarInt,
};
use rustls::NamedGroup;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::mpsc;

use crate::bounded::{Bounded, MAX_HEADER_BYTES};
use crate::congestion::{CongestionControl, Factory, name_of};
use crate::connection_log::ConnectionLog;
use crate::endpoints::Endpoint;
use crate::matcher::Request;
use crate::replay::{Answer, Replay};
use crate::request_log::RequestLog;

/// The payload of every full UDP packet, as in quic_server.
const PACKET_BYTES: u16 = 1250;
/// The largest payload of a client's UDP packet, as in quic_server.
const MAX_UDP_PAYLOAD: u16 = 1472;
/// How much of a request's body may be sent before the server has read it (per stream, per connection), as in
/// quic_server.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The most data that is held for sending: more than a browser's windows allow (15 MiB in Chromium), so that this limit
/// never applies.
const SEND_WINDOW: u64 = 16 * 1024 * 1024;
/// The most requests at once: the same as NGINX's http2_max_concurrent_streams on the TCP side. The most control
/// streams: those that HTTP/3 needs in addition to requests, with some to spare.
const MAX_REQUESTS: u32 = 100;
const MAX_CONTROL_STREAMS: u32 = 16;
/// The same as NGINX's keepalive_timeout on the TCP side. The browser's own timer (30 s in Chromium) always expires
/// first.
const IDLE_TIMEOUT_MS: u32 = 600_000;
/// Linux's default limit (net.core.rmem_max and wmem_max): the most that every machine grants without privileges.
const SOCKET_BUFFER: usize = 212_992;
/// The most connections at once: more than any page opens to one address.
const MAX_CONNECTIONS: usize = 1000;
const NO_ERROR: u32 = 0x100; // H3_NO_ERROR (RFC 9114, section 8.1)

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum TlsGroup {
    #[value(name = "X25519")]
    X25519,
    #[value(name = "P-256")]
    P256,
    #[value(name = "P-384")]
    P384,
}

/// The settings of connections, from the command line. `qlog`: the folder to which connections are logged.
#[derive(Clone)]
pub struct Settings {
    pub control: CongestionControl,
    pub initial_window: u64,
    pub tls_group: TlsGroup,
    pub early_data: bool,
    pub think_time: bool,
    pub qlog: Option<PathBuf>,
}

/// The state that all addresses share.
pub struct Site {
    pub replay: Replay,
    pub log: RequestLog,
    pub settings: Settings,
}

/// One bound address; with port 0, the kernel chose a free port.
pub struct Server {
    pub address: SocketAddr,
    endpoint: quinn::Endpoint,
    config: ServerConfig,
    site: Arc<Site>,
}

impl Server {
    /// Binds the address of `endpoint`, which no other socket may hold.
    pub fn bind(endpoint: &Endpoint, site: Arc<Site>) -> Result<Self> {
        let config = server_config(endpoint, &site.settings)?;
        let fault = || format!("cannot listen on {}", endpoint.address);
        let socket = bound_socket(endpoint.address).with_context(fault)?;
        let mut endpoint_config = EndpointConfig::default();
        endpoint_config.max_udp_payload_size(MAX_UDP_PAYLOAD)?.grease_quic_bit(false);
        let runtime = Arc::new(TokioRuntime);
        let endpoint = quinn::Endpoint::new(endpoint_config, Some(config.clone()), socket, runtime)?;
        Ok(Self { address: endpoint.local_addr()?, endpoint, config, site })
    }

    /// Serves until the endpoint is closed. Each connection holds a copy of `alive` until its log is whole.
    pub async fn serve(&self, alive: mpsc::Sender<()>) {
        while let Some(incoming) = self.endpoint.accept().await {
            if self.endpoint.open_connections() > MAX_CONNECTIONS {
                incoming.refuse();
                continue;
            }
            let (site, config, address) = (self.site.clone(), self.config.clone(), self.address);
            let alive = alive.clone();
            tokio::spawn(async move {
                serve_connection(incoming, address, config, site).await;
                drop(alive);
            });
        }
    }

    /// Closes all connections, and accepts no others.
    pub fn close(&self) {
        self.endpoint.close(NO_ERROR.into(), b"the server ends");
    }

    /// Returns when clients have been notified that their connections are closed.
    pub async fn wait_idle(&self) {
        self.endpoint.wait_idle().await;
    }
}

fn bound_socket(address: SocketAddr) -> Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn server_config(endpoint: &Endpoint, settings: &Settings) -> Result<ServerConfig> {
    let (certificate, key) = (endpoint.certificate.display(), endpoint.key.display());
    let chain = CertificateDer::pem_file_iter(&endpoint.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("cannot read the certificate {certificate}"))?;
    if chain.is_empty() {
        bail!("no usable PEM certificate in {certificate}");
    }
    let private_key = PrivateKeyDer::from_pem_file(&endpoint.key)
        .with_context(|| format!("no usable PEM private key in {key}"))?;
    let group = match settings.tls_group {
        TlsGroup::X25519 => NamedGroup::X25519,
        TlsGroup::P256 => NamedGroup::secp256r1,
        TlsGroup::P384 => NamedGroup::secp384r1,
    };
    let mut provider = ring::default_provider();
    provider.kx_groups.retain(|known| known.name() == group);
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, private_key)
        .with_context(|| format!("the key {key} and the certificate {certificate} cannot be used"))?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    // No session is resumed, except by clients that should send early data. The same holds for NGINX on the TCP side.
    tls.send_tls13_tickets = if settings.early_data { 2 } else { 0 };
    tls.max_early_data_size = if settings.early_data { u32::MAX } else { 0 };
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport(settings, None))).migration(false);
    if !settings.early_data {
        let mut tokens = ValidationTokenConfig::default();
        tokens.sent(0);
        config.validation_token_config(tokens);
    }
    Ok(config)
}

fn transport(settings: &Settings, log: Option<Arc<ConnectionLog>>) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        // Neither search for longer packets, nor use shorter ones when a burst of losses looks like a path that accepts
        // none of this length.
        .initial_mtu(PACKET_BYTES)
        .min_mtu(PACKET_BYTES)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(SEND_WINDOW)
        // Responses take turns of one packet each; h3 passes no priorities to quinn.
        .send_fairness(true)
        .max_concurrent_bidi_streams(MAX_REQUESTS.into())
        .max_concurrent_uni_streams(MAX_CONTROL_STREAMS.into())
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_TIMEOUT_MS).into()))
        .datagram_receive_buffer_size(None)
        .congestion_controller_factory(Arc::new(Factory {
            control: settings.control,
            initial_window: settings.initial_window,
            log,
        }));
    config
}

async fn serve_connection(incoming: Incoming, server: SocketAddr, mut config: ServerConfig, site: Arc<Site>) {
    let log = site.settings.qlog.as_deref().and_then(|folder| {
        let id = incoming.orig_dst_cid().to_string();
        let log = ConnectionLog::create(folder, server, incoming.remote_address(), &id);
        // The page load continues; the log will be missing.
        log.inspect_err(|error| eprintln!("quinn_server: {error:#}")).ok().map(Arc::new)
    });
    if log.is_some() {
        config.transport_config(Arc::new(transport(&site.settings, log.clone())));
    }
    let end = match connect(incoming, config, site.settings.early_data).await {
        Ok(connection) => {
            if let Some(log) = &log {
                log.add_parameters(&parameters(&connection));
            }
            tokio::spawn(serve_requests(connection.clone(), site));
            loop {
                tokio::select! {
                    end = connection.closed() => break end,
                    () = losses_of(log.as_deref()) => {}
                }
                if let Some(log) = &log {
                    log.add_losses(connection.stats().path.lost_packets);
                }
            }
        }
        Err(error) => error,
    };
    if let Some(log) = log {
        let (by_client, code) = match end {
            ConnectionError::ApplicationClosed(close) => (true, close.error_code.into_inner()),
            ConnectionError::ConnectionClosed(close) => (true, close.error_code.into()),
            _ => (false, NO_ERROR.into()),
        };
        log.close(by_client, code);
    }
}

async fn connect(
    incoming: Incoming,
    config: ServerConfig,
    early_data: bool,
) -> Result<Connection, ConnectionError> {
    let mut connecting = incoming.accept_with(Arc::new(config))?;
    if !early_data {
        return connecting.await;
    }
    // A ClientHello can take two packets. Until it is complete, quinn does not know how many streams the client allows,
    // and when quinn learns the number, it does not wake tasks that wait to open a stream, such as h3's.
    connecting.handshake_data().await?;
    match connecting.into_0rtt() {
        Ok((connection, _)) => Ok(connection),
        Err(connecting) => connecting.await,
    }
}

async fn losses_of(log: Option<&ConnectionLog>) {
    match log {
        Some(log) => log.new_losses().await,
        None => std::future::pending().await,
    }
}

/// The parameters as the connection itself reports them; quinn always paces.
fn parameters(connection: &Connection) -> serde_json::Value {
    let controller = connection.congestion_state();
    let control = name_of(controller.as_ref());
    let mut parameters = json!({
        "initial_congestion_window": controller.initial_window(),
        "max_datagram_size": connection.stats().path.current_mtu,
        "congestion_control": control,
        "pacing": true,
        "scheduler": "fair",
    });
    if control == "cubic" {
        parameters["emulated_connections"] = 1.into();
    }
    parameters
}

type RequestConnection = Bounded<h3_quinn::Connection>;
type Stream = RequestStream<<RequestConnection as h3::quic::OpenStreams<Bytes>>::BidiStream, Bytes>;

/// Serves requests until the connection ends, for whatever reason.
async fn serve_requests(connection: Connection, site: Arc<Site>) {
    let mut builder = h3::server::builder();
    builder.max_field_section_size(MAX_HEADER_BYTES).send_grease(false);
    let Ok(mut requests) = builder.build(Bounded(h3_quinn::Connection::new(connection.clone()))).await else {
        return;
    };
    while let Ok(Some(resolver)) = requests.accept().await {
        tokio::spawn(serve_request(resolver, site.clone()));
    }
    // Dropping `requests` closes the connection, which must not happen before the last response has been received.
    connection.closed().await;
}

async fn serve_request(resolver: RequestResolver<RequestConnection, Bytes>, site: Arc<Site>) {
    // A client may end a request early, or no longer want a response.
    if let Ok((request, mut stream)) = resolver.resolve_request().await {
        let _ = respond(&request, &mut stream, &site).await;
    }
}

async fn respond(request: &http::Request<()>, stream: &mut Stream, site: &Site) -> Result<()> {
    // Like NGINX, answer after the whole request has come. The answer does not depend on the body.
    while stream.recv_data().await?.is_some() {}
    let uri = request.uri();
    let request = Request {
        method: request.method().as_str(),
        authority: uri.authority().map(http::uri::Authority::as_str).unwrap_or_default(),
        target: uri.path_and_query().map(http::uri::PathAndQuery::as_str).unwrap_or_default(),
        headers: request.headers(),
    };
    let answer = site.replay.answer_to(&request);
    site.log.add(&request, &answer);
    if site.settings.think_time && answer.wait > Duration::ZERO {
        tokio::time::sleep(answer.wait).await;
    }
    send(answer, stream).await
}

async fn send(answer: Answer, stream: &mut Stream) -> Result<()> {
    let mut response = Response::new(());
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    stream.send_response(response).await?;
    if !answer.body.is_empty() {
        stream.send_data(answer.body).await?;
    }
    stream.finish().await?;
    Ok(())
}
